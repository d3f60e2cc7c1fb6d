/** The world as Throughline sees it. Everything that is not a pure function of its arguments goes through here. */

export interface Clock {
  /** UTC milliseconds. */
  nowMs(): number;
  /** Resolves after the delay, or rejects with ABORTED as soon as the signal says so. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

export interface RandomSource {
  /** A random unsigned 32-bit integer. */
  uint32(): number;
  /** A random UUID. */
  uuid(): string;
}

export interface RecordIds {
  /** A new record id; ids of one process sort in the order they were made. */
  next(): string;
}

export interface Logger {
  log(level: "debug" | "info" | "warn" | "error", message: string, details?: Readonly<Record<string, unknown>>): void;
}

export interface ChatRequest {
  readonly model: string;
  readonly system: string | null;
  /** In the wire shape of the provider that serves the model. */
  readonly messages: readonly unknown[];
  readonly tools?: readonly unknown[];
  readonly maxOutputTokens?: number;
  readonly signal?: AbortSignal;
}

export interface ChatReply {
  readonly message: Readonly<Record<string, unknown>>;
  readonly stopReason: string;
  /** What the provider said of the call's tokens; null when it said nothing. */
  readonly usage: Readonly<Record<string, number>> | null;
}

/** A model behind one function, whoever serves it. */
export interface ChatModel {
  readonly provider: string;
  chat(request: ChatRequest): Promise<ChatReply>;
}

export interface SummaryRequest {
  /** The conversation to summarise, as plain text. */
  readonly text: string;
  readonly previousSummary: string | null;
  readonly maxOutputTokens: number;
  readonly signal?: AbortSignal;
}

export interface SummaryReply {
  readonly summary: string;
  /** The provider or method that wrote it. */
  readonly source: string;
  readonly usage: Readonly<Record<string, number>> | null;
}

export interface Summarizer {
  summarize(request: SummaryRequest): Promise<SummaryReply>;
}
