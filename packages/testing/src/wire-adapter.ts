import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "./json-value.ts";
import type { SimulatedModel } from "./model-table.ts";
import type { PrefixCache } from "./prefix-cache.ts";
import type { ResponseLedger } from "./openai/response-ledger.ts";
import type { AnswerReply } from "./simulated-reply.ts";
import type { ThinkingSeals } from "./thinking-seal.ts";
import type { Violation } from "./violation.ts";

/** The wire formats. */
export type SimulatedApi = "anthropic" | "openai-chat" | "openai-responses" | "ollama";

/** What all adapters of one simulator share. */
export interface WireContext {
  /** `msg` gives `msg_sim_1`, then `msg_sim_2`; one count for all kinds. */
  nextId(kind: string): string;
  /** Unix milliseconds for the `created` fields. */
  nowMs(): number;
  model(name: string): SimulatedModel;
  readonly seals: ThinkingSeals;
  readonly cache: PrefixCache;
  readonly ledger: ResponseLedger;
}

/** A request as an adapter sees it. */
export interface WireRequest {
  readonly body: JsonObject;
  readonly headers: IncomingHttpHeaders;
  /** True for the endpoints that only count. */
  readonly countOnly: boolean;
}

/** What a provider thinks of a request. */
export interface Judgement {
  readonly violation: Violation | null;
  /** `overflow` when the request is valid and too large. */
  readonly kind: "invalid" | "overflow";
  /** By the simulator's own count; 0 when the request is invalid. */
  readonly promptTokens: number;
}

/** A response with a body of its own. */
export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** An answer in both forms; the request decides which is sent. */
export interface WireAnswer {
  readonly whole: string;
  /** Each with its framing, ready to be written. */
  readonly events: readonly string[];
}

/** One provider's wire format. */
export interface WireAdapter {
  readonly api: SimulatedApi;
  /** The content type of a stream. */
  readonly streamType: string;
  /** The status of the failure that usually breaks off a stream. */
  readonly streamFailureStatus: number;
  /** Null when the credentials will do. */
  authenticate(headers: IncomingHttpHeaders, apiKey: string | undefined): Violation | null;
  judge(request: WireRequest): Judgement;
  streams(body: JsonObject): boolean;
  answer(request: WireRequest, reply: AnswerReply, promptTokens: number): WireAnswer;
  /** The answer of a counting endpoint. */
  count(promptTokens: number): JsonObject;
  /** A failure before the first byte. */
  failure(violation: Violation): WireResponse;
  /** A failure after it, as an event. */
  failureEvent(violation: Violation): string;
  /** A refusal that the provider sends inside a stream of status 200; null where it answers with the status. */
  refusalEvents(request: WireRequest, judgement: Judgement): readonly string[] | null;
  /** What the provider usually says with this status. */
  usualFailure(status: number): Violation;
}

/** The judgement of a valid request that fits. */
export function accepted(promptTokens: number): Judgement {
  return { violation: null, kind: "invalid", promptTokens };
}
