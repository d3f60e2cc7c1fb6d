import type { AssistantMessage, ImageBlock, TextBlock, UnknownBlock } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";

/**
 * Reads the time and waits. Everything in Throughline that is not a pure function of its arguments goes through a port
 * such as this one.
 */
export interface Clock {
  /** Returns the time in UTC milliseconds. */
  nowMs(): number;
  /** Resolves after the delay in milliseconds, or rejects with ABORTED as soon as the signal aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Provides random numbers. */
export interface RandomSource {
  /** Returns a random unsigned 32-bit integer. */
  uint32(): number;
  /** Returns a random UUID. */
  uuid(): string;
}

/** Creates record ids. */
export interface RecordIds {
  /** Returns a new record id; ids of one process sort in the order of their creation. */
  next(): string;
}

/** Reads the variables that a process was started with. */
export interface Environment {
  /** Returns the value of a variable; undefined when the variable is not set. */
  get(name: string): string | undefined;
}

/** Describes a tool to a model. */
export interface ToolDefinition {
  /** States the name by which the model calls the tool. */
  readonly name: string;
  /** Describes for the model what the tool does and when to use it. */
  readonly description: string;
  /** Holds the JSON Schema of the arguments, which are an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Describes the call that a tool answers. */
export interface AgentToolCall {
  /** Aborts when the turn aborts. */
  readonly signal: AbortSignal;
  /** States the id of the call, as the record of the reply keeps it. */
  readonly callId: string;
  /** States the session of the call; absent when a tool runs outside of a session. */
  readonly ref?: SessionRef;
  /** States the turn of the call; absent when a tool runs outside of a turn. */
  readonly turnId?: string;
}

/** Holds the answer of a tool. A string stands for `{ content }`. */
export interface AgentToolResult {
  /** Holds the content that the model reads: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Reports to the model that the call failed. @default false */
  readonly isError?: boolean;
  /** Holds JSON for people and programs, which the record keeps and no model receives. @default none */
  readonly details?: unknown;
}

/**
 * Holds a tool that an agent may call: its description for the model, and the function that runs. `defineTool` creates
 * a tool with typed arguments.
 */
export interface AgentTool {
  /** Describes the tool to the model. */
  readonly definition: ToolDefinition;
  /**
   * Runs one call. Return a result with `isError` for a failure that the model can act on. An error that is thrown
   * becomes such a result too.
   *
   * @param args the arguments as the model wrote them: an object, whose fields are not checked.
   */
  run(
    args: Readonly<Record<string, unknown>>,
    call: AgentToolCall,
  ): string | AgentToolResult | Promise<string | AgentToolResult>;
}

/** Reports a part of an answer while the model writes it, in order. Deltas only inform; the reply counts. */
export type ChatDelta =
  /** Reports a piece of the answer, or of the model's thinking. */
  | {
      /** States whether the text is part of the answer or of the thinking. */
      readonly type: "text" | "thinking";
      /** Holds the piece that arrived, which may be part of a word. */
      readonly text: string;
    }
  /** Reports a tool call whose arguments are complete. */
  | {
      readonly type: "tool-call";
      /** States the id of the call, as the model gave it. */
      readonly id: string;
      /** Names the tool that is called. */
      readonly name: string;
    };

/**
 * States whether the model calls tools: as it likes, never, at least one, or one by name.
 */
export type ToolChoice =
  | "auto"
  | "none"
  | "required"
  | {
      /** Names the tool that the model calls. */
      readonly tool: string;
    };

/** Describes an answer in JSON. */
export interface OutputFormat {
  /** Names the answer for providers that ask for a name, with letters, digits, `_` and `-`. */
  readonly name: string;
  /** Holds the JSON Schema of the answer, which is an object. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Holds one request to a model, in the messages of its provider. */
export interface ChatRequest {
  /** States the provider's id of the model. */
  readonly modelId: string;
  /** Holds the system prompt; null for none. */
  readonly system: string | null;
  /** Holds the messages in the wire shape that `ChatModel.api` names. */
  readonly messages: readonly unknown[];
  /** Lists the tools that the model may call. @default none */
  readonly tools?: readonly ToolDefinition[];
  /** States whether the model calls tools. Only the choices in `ChatModel.toolChoices` are asked for. @default "auto" */
  readonly toolChoice?: ToolChoice;
  /**
   * Asks for an answer in JSON that fits a schema, in the provider's own mode. Only models whose `acceptsOutput`
   * returned true are asked for it.
   * @default an answer in text
   */
  readonly output?: OutputFormat;
  /** Limits the tokens of the answer; null leaves the limit to the provider. @default null */
  readonly maxOutputTokens?: number | null;
  /** Sets the thinking level: `off`, `low`, `medium`, `high`, or another word of the provider. @default off */
  readonly thinkingLevel?: string;
  /** Aborts the call. The part of the answer that had arrived is passed to `onPartial`. */
  readonly signal?: AbortSignal;
  /** Receives the deltas of the answer. Setting it streams the answer. @default none */
  readonly onDelta?: (delta: ChatDelta) => void;
  /**
   * Receives the part that had arrived of an answer that broke off or was aborted. It is called at most once, before
   * the call rejects, and never when no part had arrived. `stopReason` is `aborted` or `error`.
   * @default none
   */
  readonly onPartial?: (partial: AssistantMessage) => void;
  /**
   * Receives each wait before the provider is asked again: its length in milliseconds, the HTTP status, and the number
   * of attempts so far.
   * @default none
   */
  readonly onWait?: (wait: { readonly delayMs: number; readonly status: number; readonly attempt: number }) => void;
}

/** Holds the reply of a model to one request. */
export interface ChatReply {
  /** Holds the message as a record keeps it, with `api`, `provider`, `model`, `usage` and `stopReason`. */
  readonly message: AssistantMessage;
  /** States why the answer ended, in the provider's own word. */
  readonly stopReason: string;
  /** Holds the token counts that the provider reported, in its own fields; null without a report. */
  readonly usage: Readonly<Record<string, unknown>> | null;
}

/** Provides the models of one provider behind one function. */
export interface ChatModel {
  /** Names the provider as records do: `anthropic`, `openai`, `ollama`, … */
  readonly provider: string;
  /**
   * Names the wire shape of the messages, by the name of a history target: `anthropic`, `openai`, `openai-responses`, …
   */
  readonly api: string;
  /**
   * Sends one request. Rejects with ABORTED after an abort. Other failures reject with the unchanged error of the
   * provider's SDK, because the guard reads its status, headers and body. The SDK makes the retries.
   */
  chat(request: ChatRequest): Promise<ChatReply>;
  /** Lists the values of `ChatRequest.toolChoice` that the provider accepts beside `auto`. @default none */
  readonly toolChoices?: readonly ("none" | "required" | "tool")[];
  /**
   * Returns true when the model answers a request with `output` in the provider's own JSON mode. Absent when the
   * provider has no such mode; a tool then takes the answer.
   */
  acceptsOutput?(request: Pick<ChatRequest, "modelId" | "tools"> & { readonly output: OutputFormat }): boolean;
  /** Counts the tokens of a request at the provider's own endpoint. Absent when the provider has no such endpoint. */
  countTokens?(request: ChatRequest): Promise<number>;
  /**
   * Returns the window that the provider states for a model, in tokens; null when it states none. Absent when the
   * provider cannot be asked.
   */
  windowTokens?(modelId: string, signal?: AbortSignal): Promise<number | null>;
  /** Returns whether a model reads images; null when that is not known. Absent when the provider cannot say it. */
  takesImages?(modelId: string, signal?: AbortSignal): Promise<boolean | null>;
}

/**
 * Describes a model that answers: the provider, the model, and its limits. `@throughline/models` creates one:
 * `anthropic("claude-…")`.
 */
export interface SessionModel {
  /** Holds the provider that is asked. */
  readonly chat: ChatModel;
  /** States the provider's id of the model. */
  readonly modelId: string;
  /**
   * States the window in tokens; null means unknown.
   * @default what the provider states, else what its errors have told
   */
  readonly windowTokens?: number | null;
  /**
   * Sets the window in tokens that is assumed when neither `windowTokens` nor the provider states one.
   * @default null: it stays unknown
   */
  readonly assumedWindowTokens?: number | null;
  /** Limits each answer, in tokens; null leaves the limit to the provider. @default 8192 */
  readonly maxOutputTokens?: number | null;
  /**
   * Sets the thinking level: `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
   * @default what the session's entry says, else what its records last set, for the model they name; else `off`
   */
  readonly thinkingLevel?: string;
}

/** Holds the text to summarize, and the limits of the summary. */
export interface SummaryRequest {
  /** Holds the conversation to summarize, as plain text. */
  readonly text: string;
  /** Holds the summary that the new summary continues; null for the first summary. */
  readonly previousSummary: string | null;
  /** Limits the tokens of the summary. */
  readonly maxOutputTokens: number;
  /**
   * Asks for another text than a summary, such as a title. A model gets it as its system prompt and writes the text
   * about `text`. A summarizer without a model rejects such a request.
   * @default the summarizer's own instruction for a summary
   */
  readonly instruction?: string | undefined;
  /**
   * Returns the reason why a text may not replace the conversation, or null when it may. With a reason, a chain of
   * summarizers asks its next summarizer.
   * @default an audit without the size of what is replaced
   */
  readonly audit?: (summary: string) => string | null;
  /** Aborts the call of the model. */
  readonly signal?: AbortSignal;
}

/** Holds a summary, and names its writer. */
export interface SummaryReply {
  /** Holds the text of the summary. */
  readonly summary: string;
  /** Names the provider or method that wrote the summary. */
  readonly source: string;
  /** Holds the tokens that the provider reported; null without a report. */
  readonly usage: Readonly<Record<string, number>> | null;
}

/** Writes summaries. */
export interface Summarizer {
  /** Writes one summary, or throws when it cannot. */
  summarize(request: SummaryRequest): Promise<SummaryReply>;
}

/** Sets what the texts of `Embedder.embed` are, and the signal of the call. */
export interface EmbedOptions {
  /**
   * States whether the texts are questions or texts in which answers are looked for. Many models embed both differently,
   * so there is no default.
   */
  readonly kind: "query" | "passage";
  /** Aborts the call, which then rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Turns texts into vectors whose angles state how close the meanings are. `@throughline/embedders` creates embedders. */
export interface Embedder {
  /** Identifies the vector space: `provider/model@dimensions`. Vectors of different ids are never compared. */
  readonly id: string;
  /** States the length of each vector. */
  readonly dimensions: number;
  /** Limits the texts of one call. */
  readonly maxBatch: number;
  /** Limits the tokens of one text. Longer texts are refused or cut by the model. */
  readonly maxTokens: number;
  /** Returns one vector for each text, in the same order. */
  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]>;
}
