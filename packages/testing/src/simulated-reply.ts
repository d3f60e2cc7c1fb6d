/** A part of a scripted answer, in the order the model would produce it. */
export type ReplyPart =
  | { readonly type: "text"; readonly text: string }
  /** Signed by the simulator where the provider signs; later requests must bring it back unchanged. */
  | { readonly type: "thinking"; readonly thinking: string }
  /** Anthropic only; other providers leave it out. */
  | { readonly type: "redacted-thinking" }
  /** `id` is made up when absent. */
  | { readonly type: "tool-call"; readonly name: string; readonly input: unknown; readonly id?: string };

/** Why the answer ended, in words of no provider. */
export type ReplyStop = "end" | "length" | "tool-calls" | "refusal" | "context-window";

/** Figures that replace what the simulator would have counted. */
export interface ReplyUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly thinkingTokens?: number;
}

/** A scripted answer. */
export interface AnswerReply {
  readonly kind: "answer";
  readonly content: string | readonly ReplyPart[];
  /** @default "tool-calls" when a call is in the content, otherwise "end" */
  readonly stop?: ReplyStop;
  readonly usage?: ReplyUsage;
  /** Before the first byte. @default 0 */
  readonly delayMs?: number;
  /** Between two stream events. @default 0 */
  readonly eventDelayMs?: number;
  /** Sizes of the written pieces, used in turn without regard to events or characters. @default one event a piece */
  readonly chunkBytes?: readonly number[];
  /** Ends the stream early: by closing the connection, or with the provider's error event. */
  readonly breakAfter?: StreamBreak;
}

/** Where and how a stream ends early; what the error event says is the provider's usual words when nothing is given. */
export interface StreamBreak {
  readonly events: number;
  readonly how: "cut" | "error-event";
  readonly status?: number;
  readonly message?: string;
}

/** A scripted failure, answered in the provider's envelope although the request was valid. */
export interface ErrorReply {
  readonly kind: "error";
  readonly status: number;
  /** @default the provider's usual type, text and code for the status */
  readonly message?: string;
  readonly type?: string;
  readonly code?: string;
  /** Sent as `retry-after-ms` and, in whole seconds, as `retry-after`. */
  readonly retryAfterMs?: number;
  /** @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** @default 0 */
  readonly delayMs?: number;
}

/** A string stands for an answer of that text. */
export type SimulatedReply = string | AnswerReply | ErrorReply;

/** The parts of an answer; a string is one text part, an empty string none. */
export function replyParts(reply: AnswerReply): readonly ReplyPart[] {
  if (typeof reply.content !== "string") return reply.content;
  return reply.content === "" ? [] : [{ type: "text", text: reply.content }];
}

/** Why the answer ends. */
export function replyStop(reply: AnswerReply): ReplyStop {
  return reply.stop ?? (replyParts(reply).some((part) => part.type === "tool-call") ? "tool-calls" : "end");
}

/** The text in pieces of at most `size` code points, none of them a broken character; no piece for an empty text. */
export function pieces(text: string, size: number): readonly string[] {
  const points = Array.from(text);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) =>
    points.slice(index * size, (index + 1) * size).join(""),
  );
}
