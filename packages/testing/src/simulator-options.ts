import type { Clock } from "@throughline/core";
import type { SimulatedModel } from "./model-table.ts";
import type { SimulatedReply } from "./simulated-reply.ts";
import type { SimulatedApi } from "./wire-adapter.ts";

/** How a request ended. */
export type RequestOutcome =
  /** Not answered yet. */
  | "pending"
  | "answered"
  /** Refused by the provider's rules or over its window. */
  | "refused"
  /** The script said to fail. */
  | "failed"
  /** The script said to break the answer off. */
  | "cut"
  /** The client went away first. */
  | "aborted";

/** A request as it came. */
export interface ReceivedRequest {
  /** From 1, in the order the requests were complete. */
  readonly number: number;
  readonly api: SimulatedApi;
  /** With its query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body's bytes, for comparison. */
  readonly bytes: Uint8Array;
  /** The body parsed; undefined when it is no JSON. */
  readonly body: unknown;
  /** By the simulator's count; 0 for a request that is not valid. */
  readonly promptTokens: number;
  readonly outcome: RequestOutcome;
  /** The HTTP status of the answer; 0 while it is pending. */
  readonly status: number;
}

/** A request the provider refused. */
export interface Refusal {
  /** The request's number. */
  readonly request: number;
  readonly api: SimulatedApi;
  /**
   * `invalid`: against the rules for messages. `overflow`: valid and larger than the window. `bytes`: a larger body
   * than the provider takes. `credentials`, `model`: unknown. `script`: valid, but the script has no reply left.
   */
  readonly kind: "invalid" | "overflow" | "bytes" | "credentials" | "model" | "script";
  readonly status: number;
  /** The provider's text. */
  readonly message: string;
}

/** Options of `createProviderSimulator`. */
export interface ProviderSimulatorOptions {
  /** Answers in turn. @default [] */
  readonly replies?: readonly SimulatedReply[];
  /** Gives the answer once `replies` are used up. @default none: the request is refused with kind `script` */
  readonly fallback?: (request: ReceivedRequest) => SimulatedReply;
  /** What differs from the model's usual figures, by name; `*` stands for all. @default {} */
  readonly models?: Readonly<Record<string, Partial<SimulatedModel>>>;
  /** Refuse models that `models` does not name. @default false */
  readonly onlyListedModels?: boolean;
  /** The one accepted key. @default any key, but one must be sent, except to Ollama */
  readonly apiKey?: string;
  /** Largest body, in bytes. @default 33554432 */
  readonly maxRequestBytes?: number;
  /** Ollama's window for requests without `num_ctx`. @default 4096 */
  readonly ollamaContextTokens?: number;
  /** Shorter prompt prefixes are not cached. @default 1024 */
  readonly minimumCacheTokens?: number;
  /** Stands in every id; two simulators of one conversation need two. @default "sim" */
  readonly idPrefix?: string;
  /** Signs thinking; a second simulator with the same key recognizes what the first one signed. @default "sim" */
  readonly signingKey?: string;
  /** Stamps the answers. @default always 2026-01-01T00:00:00Z, so that two runs give the same bytes */
  readonly clock?: Pick<Clock, "nowMs">;
  /** Called when a request is complete, before it is judged. */
  readonly onRequest?: (request: ReceivedRequest) => void;
}

/** A provider on loopback. */
export interface ProviderSimulator extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`; throws before `start`. OpenAI's base URL is this with `/v1`. */
  readonly url: string;
  /** Everything received, in order. */
  readonly requests: readonly ReceivedRequest[];
  /** Everything refused, in order. Empty means that every request was valid and fitted. */
  readonly refusals: readonly Refusal[];
  /** Listens on a free port. */
  start(): Promise<void>;
  /** Adds to the script. */
  enqueue(...replies: readonly SimulatedReply[]): void;
  /** Ends open answers and stops listening; may be called again. */
  close(): Promise<void>;
}
