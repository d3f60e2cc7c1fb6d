import type { Clock } from "@throughline/core";
import type { SimulatedModel } from "./model-table.ts";
import type { SimulatedReply } from "./simulated-reply.ts";
import type { SimulatedApi } from "./wire-adapter.ts";

/** States how a request ended. */
export type RequestOutcome =
  /** The simulator has not answered yet. */
  | "pending"
  | "answered"
  /** The provider's rules reject the request, or it exceeds the window. */
  | "refused"
  /** The script demanded a failure. */
  | "failed"
  /** The script demanded to break the answer off. */
  | "cut"
  /** The client disconnected first. */
  | "aborted";

/** Records a request as the simulator received it. */
export interface ReceivedRequest {
  /** Counts the requests from 1, in the order in which they were complete. */
  readonly number: number;
  /** Names the wire format of the request. */
  readonly api: SimulatedApi;
  /** Holds the path with its query. */
  readonly path: string;
  /** Maps header names in lower case to values. */
  readonly headers: Readonly<Record<string, string>>;
  /** Holds the bytes of the body, so that tests can compare them. */
  readonly bytes: Uint8Array;
  /** Holds the parsed body. It is undefined when the body is not JSON. */
  readonly body: unknown;
  /** Holds the simulator's own count of the prompt; 0 for an invalid request. */
  readonly promptTokens: number;
  /** States how the request ended so far. */
  readonly outcome: RequestOutcome;
  /** Holds the HTTP status of the answer; 0 while the request is pending. */
  readonly status: number;
}

/** Records a request that the simulator rejected. */
export interface Refusal {
  /** States the number of the request. */
  readonly request: number;
  /** Names the wire format of the request. */
  readonly api: SimulatedApi;
  /**
   * States the reason. `invalid`: the request violates the rules for messages. `overflow`: it is valid but exceeds the
   * window. `bytes`: its body is larger than the provider accepts. `credentials` and `model`: the key or the model is
   * unknown. `script`: it is valid, but the script has no reply left.
   */
  readonly kind: "invalid" | "overflow" | "bytes" | "credentials" | "model" | "script";
  /** Holds the HTTP status of the refusal. */
  readonly status: number;
  /** Holds the provider's error text. */
  readonly message: string;
}

/** Configures `createProviderSimulator`. */
export interface ProviderSimulatorOptions {
  /** Sets the replies, which the simulator uses in turn. @default [] */
  readonly replies?: readonly SimulatedReply[] | undefined;
  /** Creates the reply once `replies` are used up. @default none: the request is refused with kind `script` */
  readonly fallback?: ((request: ReceivedRequest) => SimulatedReply) | undefined;
  /** Overrides the usual properties of models by name; `*` applies to all models. @default {} */
  readonly models?: Readonly<Record<string, Partial<SimulatedModel>>> | undefined;
  /** Rejects models that `models` does not name. @default false */
  readonly onlyListedModels?: boolean | undefined;
  /** Sets the only accepted key. @default any key, but one must be sent, except to Ollama */
  readonly apiKey?: string | undefined;
  /** Limits the body of a request, in bytes. @default 33554432 */
  readonly maxRequestBytes?: number | undefined;
  /** Sets Ollama's window in tokens for requests without `num_ctx`. @default 4096 */
  readonly ollamaContextTokens?: number | undefined;
  /** Sets the shortest prompt prefix that is cached, in tokens. @default 1024 */
  readonly minimumCacheTokens?: number | undefined;
  /** Is part of every id. Two simulators of one conversation need different prefixes. @default "sim" */
  readonly idPrefix?: string | undefined;
  /** Signs thinking. Another simulator with the same key accepts these signatures. @default "sim" */
  readonly signingKey?: string | undefined;
  /** Sets the time of the answers. @default always 2026-01-01T00:00:00Z, so that two runs give the same bytes */
  readonly clock?: Pick<Clock, "nowMs"> | undefined;
  /** Runs when a request is complete, before the simulator validates it. */
  readonly onRequest?: ((request: ReceivedRequest) => void) | undefined;
}

/** Controls a simulated provider on the loopback interface. */
export interface ProviderSimulator extends AsyncDisposable {
  /** Holds `http://127.0.0.1:<port>`. Reading it before `start` throws an Error. Append `/v1` for OpenAI's base URL. */
  readonly url: string;
  /** Lists all received requests in order. */
  readonly requests: readonly ReceivedRequest[];
  /** Lists all rejections in order. An empty list means that every request was valid and fitted the window. */
  readonly refusals: readonly Refusal[];
  /** Listens on a free port. */
  start(): Promise<void>;
  /** Appends replies to the script. */
  enqueue(...replies: readonly SimulatedReply[]): void;
  /** Ends open answers and stops listening. Repeated calls are allowed. */
  close(): Promise<void>;
}
