import type { AssistantMessage, ImageBlock, TextBlock, UnknownBlock } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";

/** The world as Throughline sees it. Everything that is not a pure function of its arguments goes through here. */

export interface Clock {
  /** UTC milliseconds. */
  nowMs(): number;
  /** Resolves after the delay, or rejects with ABORTED as soon as the signal says so. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** The port for random numbers. */
export interface RandomSource {
  /** A random unsigned 32-bit integer. */
  uint32(): number;
  /** A random UUID. */
  uuid(): string;
}

/** The port that makes record ids. */
export interface RecordIds {
  /** A new record id; ids of one process sort in the order they were made. */
  next(): string;
}

/** The variables a process was started with. */
export interface Environment {
  /** The value of a variable; undefined where it is not set. */
  get(name: string): string | undefined;
}

/** A tool as a model sees it. `inputSchema` is JSON Schema of an object. */
export interface ToolDefinition {
  /** The name by which the model calls the tool. */
  readonly name: string;
  /** What the tool does and when to use it, for the model. */
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** What a tool gets about the call it answers. */
export interface AgentToolCall {
  /** Aborted with the turn. */
  readonly signal: AbortSignal;
  /** The id of the call, as the record of the reply keeps it. */
  readonly callId: string;
  /** The session the call belongs to; absent where a tool runs outside of one. */
  readonly ref?: SessionRef;
  /** The turn the call belongs to; absent where a tool runs outside of one. */
  readonly turnId?: string;
}

/** What a tool answers. A string stands for `{ content }`. */
export interface AgentToolResult {
  /** What the model reads: text, or blocks of text and images. */
  readonly content: string | readonly (TextBlock | ImageBlock | UnknownBlock)[];
  /** Reports to the model that the call failed. @default false */
  readonly isError?: boolean;
  /** JSON for people and programs, kept in the record and never sent to a model. @default none */
  readonly details?: unknown;
}

/** A tool an agent may call: what the model reads about it, and what runs. `defineTool` makes one with typed arguments. */
export interface AgentTool {
  /** What the model reads about the tool. */
  readonly definition: ToolDefinition;
  /**
   * Runs one call.
   *
   * @param args as the model wrote them: an object, of which nothing else is checked.
   * A failure the model should know of and can act on is a result with `isError`; what is thrown becomes one too.
   */
  run(
    args: Readonly<Record<string, unknown>>,
    call: AgentToolCall,
  ): string | AgentToolResult | Promise<string | AgentToolResult>;
}

/** What arrives while a model answers, in order. Deltas inform; what counts is the reply. */
export type ChatDelta =
  /** A piece of the answer, or of the model's thinking. */
  | {
      /** Whether the text is part of the answer or of the thinking. */
      readonly type: "text" | "thinking";
      /** The piece that arrived, which may be part of a word. */
      readonly text: string;
    }
  /** A call of a tool whose arguments are complete. */
  | {
      readonly type: "tool-call";
      /** The id of the call, as the model gave it. */
      readonly id: string;
      /** The name of the tool that is called. */
      readonly name: string;
    };

/** One request to a model, in the messages of its provider. */
export interface ChatRequest {
  /** The provider's id of the model. */
  readonly modelId: string;
  /** The system prompt; null for none. */
  readonly system: string | null;
  /** In the wire shape that `ChatModel.api` names. */
  readonly messages: readonly unknown[];
  /** The tools that the model may call. @default none */
  readonly tools?: readonly ToolDefinition[];
  /** Null leaves it to the provider. @default null */
  readonly maxOutputTokens?: number | null;
  /** `off`, `low`, `medium`, `high`, or a word of the provider's. @default off */
  readonly thinkingLevel?: string;
  /** Ends the call. What had arrived is given to `onPartial`. */
  readonly signal?: AbortSignal;
  /** Given, the answer is streamed. @default none */
  readonly onDelta?: (delta: ChatDelta) => void;
  /**
   * Called at most once, before the call rejects, with what had arrived of an answer that broke off or was aborted.
   * Not called when nothing had arrived. `stopReason` is `aborted` or `error`. @default none
   */
  readonly onPartial?: (partial: AssistantMessage) => void;
}

/** The reply of a model to one request. */
export interface ChatReply {
  /** As a record keeps it, with `api`, `provider`, `model`, `usage` and `stopReason`. */
  readonly message: AssistantMessage;
  /** In the provider's own word. */
  readonly stopReason: string;
  /** What the provider said of the call's tokens, in its own fields; null when it said nothing. */
  readonly usage: Readonly<Record<string, unknown>> | null;
}

/** A provider's models behind one function. */
export interface ChatModel {
  /** As records name it: `anthropic`, `openai`, `ollama`, … */
  readonly provider: string;
  /** The wire shape of its messages, by the name of a history target: `anthropic`, `openai`, `openai-responses`, … */
  readonly api: string;
  /**
   * Rejects with ABORTED after an abort, and otherwise with the error of the provider's SDK as it came: the guard reads
   * its status, headers and body. Retries are the SDK's.
   */
  chat(request: ChatRequest): Promise<ChatReply>;
  /** Counts a request at the provider's own endpoint. Absent if the provider has no such endpoint. */
  countTokens?(request: ChatRequest): Promise<number>;
  /** The window the provider states for a model, in tokens; null when it states none. Absent where it cannot be asked. */
  windowTokens?(modelId: string, signal?: AbortSignal): Promise<number | null>;
}

/** A model that answers: who is asked, which model, and its limits. `@throughline/models` makes one: `anthropic("claude-…")`. */
export interface SessionModel {
  /** The provider that is asked. */
  readonly chat: ChatModel;
  /** The provider's id of the model. */
  readonly modelId: string;
  /** Null stands for unknown. @default what the provider states, else what its errors have told */
  readonly windowTokens?: number | null;
  /** Taken for the window where neither `windowTokens` nor the provider states one. @default null: it stays unknown */
  readonly assumedWindowTokens?: number | null;
  /** Room for each answer, in tokens; null leaves it to the provider. @default 8192 */
  readonly maxOutputTokens?: number | null;
  /**
   * `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
   * @default what the session's entry says, else what its records last set, for the model they name; else `off`
   */
  readonly thinkingLevel?: string;
}

/** What a summarizer is asked to summarize. */
export interface SummaryRequest {
  /** The conversation to summarize, as plain text. */
  readonly text: string;
  /** The summary that the new one continues; null for the first. */
  readonly previousSummary: string | null;
  /** The most tokens of the summary. */
  readonly maxOutputTokens: number;
  /**
   * Returns the reason why a text may not take the place of the conversation; null when it may. A chain of summarizers asks
   * its next one if there is a reason. @default an audit without the size of what is replaced
   */
  readonly audit?: (summary: string) => string | null;
  /** Ends the call of the model. */
  readonly signal?: AbortSignal;
}

/** A summary, and who wrote it. */
export interface SummaryReply {
  /** The text of the summary. */
  readonly summary: string;
  /** The provider or method that wrote it. */
  readonly source: string;
  /** The tokens that the provider reported; null where nothing was reported. */
  readonly usage: Readonly<Record<string, number>> | null;
}

/** The port that writes summaries. */
export interface Summarizer {
  /** Writes one summary. Throws when it cannot. */
  summarize(request: SummaryRequest): Promise<SummaryReply>;
}
