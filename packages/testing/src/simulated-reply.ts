/** Describes a part of a scripted answer. The parts stand in the order in which a model would produce them. */
export type ReplyPart = TextPart | ThinkingPart | RedactedThinkingPart | ToolCallPart;

/** Scripts a text. */
interface TextPart {
  /** Distinguishes the parts. */
  readonly type: "text";
  /** Holds the text. */
  readonly text: string;
}

/**
 * Scripts an answer in JSON. A request in the provider's JSON mode receives it as text. Another request with tools
 * receives it as a call of the tool that it forces, else of its last tool.
 */
interface JsonPart {
  /** Distinguishes the parts. */
  readonly type: "json";
  /** Holds the answer, which is written as JSON. */
  readonly value: unknown;
}

/** Scripts thinking. The simulator signs it if the provider does. Later requests must send it back unchanged. */
interface ThinkingPart {
  /** Distinguishes the parts. */
  readonly type: "thinking";
  /** Holds the text of the thinking. */
  readonly thinking: string;
}

/** Scripts encrypted thinking. Only Anthropic sends this part; the adapters of other providers omit it. */
interface RedactedThinkingPart {
  /** Distinguishes the parts. */
  readonly type: "redacted-thinking";
}

/** Scripts a tool call. */
interface ToolCallPart {
  /** Distinguishes the parts. */
  readonly type: "tool-call";
  /** Names the tool. */
  readonly name: string;
  /** Holds the arguments, which are written as JSON. */
  readonly input: unknown;
  /** Identifies the call. @default an id that the simulator generates */
  readonly id?: string;
}

/** Names the reason why the answer ended, independent of any provider. */
export type ReplyStop = "end" | "length" | "tool-calls" | "refusal" | "context-window";

/** Replaces the token counts that the simulator would report. */
interface ReplyUsage {
  /** Counts the prompt without its cached part. */
  readonly inputTokens?: number;
  /** Counts the answer with its thinking. */
  readonly outputTokens?: number;
  /** Counts the prompt tokens that were read from a cache. */
  readonly cacheReadTokens?: number;
  /** Counts the prompt tokens that were written to a cache. */
  readonly cacheWriteTokens?: number;
  /** Counts the thinking within the answer. */
  readonly thinkingTokens?: number;
}

/** Scripts an answer. */
export interface AnswerReply<Part = ReplyPart> {
  readonly kind: "answer";
  /** Holds the text, or the parts of the answer. */
  readonly content: string | readonly Part[];
  /** Sets the reason why the answer ended. @default "tool-calls" when a call is in the content, otherwise "end" */
  readonly stop?: ReplyStop;
  /** Replaces the token counts. @default the simulator's own count */
  readonly usage?: ReplyUsage;
  /** Sets the wait before the first byte, in milliseconds. @default 0 */
  readonly delayMs?: number;
  /** Sets the wait between two stream events, in milliseconds. @default 0 */
  readonly eventDelayMs?: number;
  /**
   * Sets the sizes of the written pieces in bytes, which are used in turn. Cuts may split events and characters.
   * @default one event a piece
   */
  readonly chunkBytes?: readonly number[];
  /** Ends the stream early, either by closing the connection or with the provider's error event. */
  readonly breakAfter?: StreamBreak;
}

/**
 * Sets after how many events and in which way a stream ends early. Without `message` the error event has the provider's
 * usual text.
 */
export interface StreamBreak {
  /** States the number of events that are sent before the stream ends. */
  readonly events: number;
  /** Closes the connection, or sends the provider's error event. */
  readonly how: "cut" | "error-event";
  /** States the status within the error event. */
  readonly status?: number;
  /** Replaces the text of the error event. */
  readonly message?: string;
}

/** Scripts a failure. The simulator sends it in the provider's error format although the request was valid. */
export interface ErrorReply {
  readonly kind: "error";
  /** Sets the HTTP status. */
  readonly status: number;
  /** Replaces the text of the error. @default the provider's usual type, text and code for the status */
  readonly message?: string;
  /** Replaces the error type of the provider. */
  readonly type?: string;
  /** Replaces the error code of the provider. */
  readonly code?: string;
  /** Sets the header `retry-after-ms` and, in whole seconds, `retry-after`. */
  readonly retryAfterMs?: number;
  /** Adds headers to the response. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sets the wait before the response, in milliseconds. @default 0 */
  readonly delayMs?: number;
}

/** Holds a scripted reply. A string stands for an answer with that text. */
export type SimulatedReply = string | ScriptedAnswer | ErrorReply;

/** An answer of the script. Its JSON parts become text or calls when the request is known. */
export type ScriptedAnswer = AnswerReply<ReplyPart | JsonPart>;

/** Returns the parts of an answer. A string counts as one text part, an empty string as no part. */
export function replyParts(reply: AnswerReply): readonly ReplyPart[] {
  if (typeof reply.content !== "string") return reply.content;
  return reply.content === "" ? [] : [{ type: "text", text: reply.content }];
}

export function replyStop(reply: AnswerReply): ReplyStop {
  return reply.stop ?? (replyParts(reply).some((part) => part.type === "tool-call") ? "tool-calls" : "end");
}

/**
 * Splits the text into pieces of at most `size` code points. It splits by code points, so that no piece holds half a
 * character.
 */
export function pieces(text: string, size: number): readonly string[] {
  const points = Array.from(text);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) =>
    points.slice(index * size, (index + 1) * size).join(""),
  );
}
