// The JSON that the command line prints and the routes answer: one shape for both. Loads nothing of the server.
import type { ListedCheckpoint } from "@throughline/checkpoint/internal";
import type { OverflowClassification } from "@throughline/guard";
import type { ExplainedCall } from "@throughline/session/internal";
import type { TokenInfo } from "./security/token-store.ts";

type Json<Kind extends string> = { readonly kind: Kind } & Readonly<Record<string, unknown>>;

/** A past call of a model. */
export function callJson(call: ExplainedCall): Json<"call"> {
  const { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId } = call;
  const { changes, estimatedTokens, actual, outcome, facts } = call;
  const place = { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId };
  const { messageCount, windowTokens, cut } = facts;
  return { kind: "call", ...place, messageCount, windowTokens, cut, changes, estimatedTokens, actual, outcome };
}

/** What an error of a provider means, and what the guard would do. */
export function diagnosisJson(found: OverflowClassification, action: string): Json<"diagnosis"> {
  const { overflow, kind, category, inputTokens, limitTokens, maxOutputTokens, retryAfterMs, rule } = found;
  const sizes = { inputTokens, limitTokens, maxOutputTokens, retryAfterMs };
  return { kind: "diagnosis", overflow, overflowKind: kind, category, ...sizes, rule, action };
}

/** The session that a result is about. */
export interface SessionNames {
  readonly key: string;
  readonly sessionId: string;
}

/** A checkpoint. */
export function checkpointJson(names: SessionNames, checkpoint: ListedCheckpoint): Json<"checkpoint"> {
  return { kind: "checkpoint", ...names, ...checkpoint };
}

/** What a checkpoint would cover, which nobody has made. */
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

/** A token. `secret`: its text, which is shown once. */
export function tokenJson(info: TokenInfo, secret: string | null = null): Json<"token"> {
  const { id, label, namespace, agents, scopes, mode, createdAtMs, expiresAtMs, revokedAtMs } = info;
  return { kind: "token", id, label, namespace, agents, scopes, mode, createdAtMs, expiresAtMs, revokedAtMs, secret };
}
