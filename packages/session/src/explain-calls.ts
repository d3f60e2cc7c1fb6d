import type { StoredRecord, Usage } from "@throughline/core";
import type { GuardChange } from "@throughline/guard/internal";
import type { WindowCut } from "@throughline/history/internal";
import { isSameCall, readCallPart, type CallFacts } from "./call-record.ts";
import { isCycleStart } from "./window-facts.ts";

/** What was shortened for a call, by the record it is in. */
export interface ExplainedChange {
  /** Null when it concerns more than one record, or the record lies before what was read. */
  readonly recordId: string | null;
  /** Which part of the request was shortened. */
  readonly what: GuardChange["what"];
  /** The overflow that it was shortened for. */
  readonly reason: GuardChange["reason"];
  /** The size of that part before it was shortened, in bytes. */
  readonly beforeBytes: number;
  /** Its size afterwards, in bytes. */
  readonly afterBytes: number;
}

/** A call of a model, as `throughline explain` prints it. */
export interface ExplainedCall {
  /** Of the call's record. */
  readonly callId: string;
  /** The turn that made the call. */
  readonly turnId: string;
  /** The step of the turn, from 1. */
  readonly step: number;
  /** The attempt within the step, from 0. */
  readonly attempt: number;
  /** When it ended; null when its record states no time. */
  readonly atMs: number | null;
  /** The provider that was asked. */
  readonly provider: string;
  /** The provider's id of the model. */
  readonly model: string;
  /** The oldest record that was looked at for the request. */
  readonly fromSeq: number;
  /** The newest record that was looked at. */
  readonly toSeq: number;
  /** The compaction whose summary came first; null when the request had no summary. */
  readonly summaryId: string | null;
  /** New in this call; what was shortened for earlier ones stays so. */
  readonly changes: readonly ExplainedChange[];
  /** The estimate of the whole request before it was sent. */
  readonly estimatedTokens: number;
  /** How the call ended. */
  readonly outcome: CallFacts["outcome"];
  /** The usage that the provider reported; null when it reported none. */
  readonly actual: Usage | null;
  /** Everything that the call's record holds. */
  readonly facts: CallFacts;
}

/** The calls of a log, oldest first, each with what a further record says of it. */
export function explainCalls(records: readonly StoredRecord[]): readonly ExplainedCall[] {
  const calls: ExplainedCall[] = [];
  const resultIds = new Map<string, string>();
  for (const { id, tsMs, record, type } of records) {
    if (type === "message") noteResult(record["message"], id, resultIds);
    const part = readCallPart(record);
    if (part?.part === 1) calls.push(explained(part.call, id, tsMs, resultIds));
    else if (part !== null) {
      const at = calls.findLastIndex(({ facts }) => isSameCall(facts, part));
      const call = calls[at];
      if (call === undefined) continue;
      const { changes, thinkingOut, splice } = part;
      const facts = { ...call.facts, changes, thinkingOut, splice };
      calls[at] = explained(facts, call.callId, call.atMs, resultIds);
    }
  }
  return calls;
}

/**
 * Where requests begin since a history was longer than the window; null where all of it is sent. A larger window makes it
 * whole again.
 *
 * @param records the window of a session, in order of seq
 */
export function readHistoryCut(records: readonly StoredRecord[], windowTokens: number | null): WindowCut | null {
  const cycleAt = records.findLastIndex(isCycleStart);
  const last = records.findLast(({ record }, at) => at > cycleAt && readCallPart(record)?.part === 1);
  const part = last === undefined ? null : readCallPart(last.record);
  if (part?.part !== 1) return null;
  const { cut, windowTokens: cutForTokens } = part.call;
  return (windowTokens ?? 0) > (cutForTokens ?? Infinity) ? null : cut;
}

function noteResult(message: unknown, id: string, resultIds: Map<string, string>): void {
  // Another program's record may hold anything there.
  if (typeof message !== "object" || message === null) return;
  const { role, toolCallId } = message as { readonly role?: unknown; readonly toolCallId?: unknown };
  if (role === "toolResult" && typeof toolCallId === "string") resultIds.set(toolCallId, id);
}

function explained(
  facts: CallFacts,
  callId: string,
  atMs: number | null,
  resultIds: ReadonlyMap<string, string>,
): ExplainedCall {
  const { turnId, step, attempt, provider, model, fromSeq, toSeq, summaryId, estimatedTokens, outcome, actual } = facts;
  const changes = facts.changes.map(({ recordId, callId: resultOf, what, reason, beforeBytes, afterBytes }) => {
    const found = resultOf === null ? null : (resultIds.get(resultOf) ?? null);
    return { recordId: recordId ?? found, what, reason, beforeBytes, afterBytes };
  });
  const place = { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId };
  return { ...place, changes, estimatedTokens, outcome, actual: usageOf(actual), facts };
}

function usageOf(actual: CallFacts["actual"]): Usage | null {
  if (actual === null) return null;
  const [input, output, cacheRead, cacheWrite] = actual;
  return { input, output, cacheRead, cacheWrite };
}
