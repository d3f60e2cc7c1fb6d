// The JSON that the command line prints and the routes answer: one shape for both. Loads nothing of the server.
import type { ListedCheckpoint } from "@throughline/checkpoint/internal";
import type { OverflowClassification } from "@throughline/guard";
import type { ExplainedCall } from "@throughline/session/internal";
import type { TokenInfo } from "./security/token-store.ts";

type Json<Kind extends string> = { readonly kind: Kind } & Readonly<Record<string, unknown>>;

export function callJson(call: ExplainedCall): Json<"call"> {
  const { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId } = call;
  const { changes, estimatedTokens, actual, outcome, startedMs, firstByteMs, endedMs, facts } = call;
  const place = { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId };
  const { api, messageCount, windowTokens, cut } = facts;
  const sent = { api, messageCount, windowTokens, cut, changes, estimatedTokens };
  return { kind: "call", ...place, ...sent, actual, startedMs, firstByteMs, endedMs, outcome };
}

export function diagnosisJson(found: OverflowClassification, action: string): Json<"diagnosis"> {
  const { overflow, kind, category, inputTokens, limitTokens, maxOutputTokens, retryAfterMs, rule } = found;
  const sizes = { inputTokens, limitTokens, maxOutputTokens, retryAfterMs };
  return { kind: "diagnosis", overflow, overflowKind: kind, category, ...sizes, rule, action };
}

export interface SessionNames {
  readonly key: string;
  readonly sessionId: string;
}

export function checkpointJson(names: SessionNames, checkpoint: ListedCheckpoint): Json<"checkpoint"> {
  return { kind: "checkpoint", ...names, ...checkpoint };
}

/** Describes a checkpoint that a dry run would write, so its record fields are null. */
export function plannedCheckpointJson(names: SessionNames, coversToSeq: number, tokens: number): Json<"checkpoint"> {
  return {
    kind: "checkpoint",
    ...names,
    id: null,
    seq: null,
    coversToSeq,
    tokensAtCheckpoint: tokens,
    messageCountAtCheckpoint: null,
    summary: null,
    topics: [],
    keyDecisions: [],
    openQuestions: [],
    model: null,
    atMs: null,
  };
}

/** `secret` is the token's text, which only the answer that creates the token may contain. */
export function tokenJson(info: TokenInfo, secret: string | null = null): Json<"token"> {
  const { id, label, namespace, agents, scopes, mode, createdAtMs, expiresAtMs, revokedAtMs } = info;
  const { requestsPerMinute } = info;
  const limit = requestsPerMinute === undefined ? {} : { requestsPerMinute };
  const times = { createdAtMs, expiresAtMs, revokedAtMs };
  return { kind: "token", id, label, namespace, agents, scopes, mode, ...limit, ...times, secret };
}
