import type { IncomingHttpHeaders } from "node:http";
import type { JsonObject } from "./json-value.ts";
import type { SimulatedModel } from "./model-table.ts";
import type { PrefixCache } from "./prefix-cache.ts";
import type { ResponseLedger } from "./openai/response-ledger.ts";
import type { AnswerReply } from "./simulated-reply.ts";
import type { ThinkingSeals } from "./thinking-seal.ts";
import type { Violation } from "./violation.ts";

/** Names the simulated wire formats. */
export type SimulatedApi = "anthropic" | "openai-chat" | "openai-responses" | "ollama";

export interface WireContext {
  /** Returns a unique id: `msg` gives `msg_sim_1`, then `msg_sim_2`. All kinds share one counter. */
  nextId(kind: string): string;
  /** Returns Unix milliseconds for the `created` fields. */
  nowMs(): number;
  model(name: string): SimulatedModel;
  readonly seals: ThinkingSeals;
  readonly cache: PrefixCache;
  readonly ledger: ResponseLedger;
}

export interface WireRequest {
  readonly body: JsonObject;
  readonly headers: IncomingHttpHeaders;
  /** Is true for the endpoints that only count tokens. */
  readonly countOnly: boolean;
}

export interface Judgement {
  readonly violation: Violation | null;
  /** Is `overflow` when the request is valid but too large. */
  readonly kind: "invalid" | "overflow";
  /** Holds the simulator's own count; 0 when the request is invalid. */
  readonly promptTokens: number;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Holds an answer in both forms, because the request decides which of them is sent. */
export interface WireAnswer {
  readonly whole: string;
  /** Each event includes its framing and can be written unchanged. */
  readonly events: readonly string[];
}

export interface WireAdapter {
  readonly api: SimulatedApi;
  readonly streamType: string;
  /** Holds the status of the failure that usually breaks off a stream. */
  readonly streamFailureStatus: number;
  /** Returns null when the credentials are valid. */
  authenticate(headers: IncomingHttpHeaders, apiKey: string | undefined): Violation | null;
  judge(request: WireRequest): Judgement;
  streams(body: JsonObject): boolean;
  answer(request: WireRequest, reply: AnswerReply, promptTokens: number): WireAnswer;
  count(promptTokens: number): JsonObject;
  /** Builds a failure before the first byte of the response. */
  failure(violation: Violation): WireResponse;
  /** Builds a failure after the first byte, as a stream event. */
  failureEvent(violation: Violation): string;
  /**
   * Builds a rejection inside a stream of status 200. Null means that the provider rejects with an error status
   * instead.
   */
  refusalEvents(request: WireRequest, judgement: Judgement): readonly string[] | null;
  usualFailure(status: number): Violation;
}

export function accepted(promptTokens: number): Judgement {
  return { violation: null, kind: "invalid", promptTokens };
}
