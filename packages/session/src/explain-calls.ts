import type { StoredRecord, Usage } from "@throughline/core";
import type { GuardChange } from "@throughline/guard/internal";
import type { WindowCut } from "@throughline/history/internal";
import { isSameCall, readCallPart, type CallFacts } from "./call-record.ts";
import { type CallTimes, exchangeIdOf, timesOfExchange, timesOfFacts } from "./call-times.ts";
import { isCycleStart } from "./window-facts.ts";

/** Describes what was shortened for a call, with the record that holds it. */
interface ExplainedChange {
  /**
   * Holds the id of the record. Null when the change concerns several records, or a record before those that were read.
   */
  readonly recordId: string | null;
  /** States which part of the request was shortened. */
  readonly what: GuardChange["what"];
  /** States the kind of the overflow that caused the change. */
  readonly reason: GuardChange["reason"];
  /** Holds the size of the part before the change, in bytes. */
  readonly beforeBytes: number;
  /** Holds the size of the part after the change, in bytes. */
  readonly afterBytes: number;
}

/** Describes a call of a model, as `throughline explain` prints it. */
export interface ExplainedCall {
  /** Holds the id of the call's record. */
  readonly callId: string;
  /** Holds the id of the turn that made the call. */
  readonly turnId: string;
  /** Counts the steps of the turn, from 1. */
  readonly step: number;
  /** Counts the attempts of the step, from 0. */
  readonly attempt: number;
  /** States when the call ended, in UTC milliseconds; null when its record states no time. */
  readonly atMs: number | null;
  /** Names the provider that was asked. */
  readonly provider: string;
  /** Holds the provider's id of the model. */
  readonly model: string;
  /** Holds the seq of the oldest record that the request was built from. */
  readonly fromSeq: number;
  /** Holds the seq of the newest record that the request was built from. */
  readonly toSeq: number;
  /** Holds the id of the compaction whose summary came first; null when the request had no summary. */
  readonly summaryId: string | null;
  /** Lists the changes that are new in this call. The changes of earlier calls still apply. */
  readonly changes: readonly ExplainedChange[];
  /** Holds the estimate of the whole request before it was sent, in tokens. */
  readonly estimatedTokens: number;
  /** States when the request was sent, in UTC milliseconds; null when no record states it. */
  readonly startedMs: number | null;
  /**
   * States when the answer began, in UTC milliseconds: its first byte for a call through a gateway, its first text for
   * another one. Null when no record states it.
   */
  readonly firstByteMs: number | null;
  /** States when the call ended, in UTC milliseconds; null when no record states it. */
  readonly endedMs: number | null;
  /** States how the call ended. */
  readonly outcome: CallFacts["outcome"];
  /** Holds the usage that the provider reported; null when it reported none. */
  readonly actual: Usage | null;
  /** Holds all facts of the call's record. */
  readonly facts: CallFacts;
}

/** Returns the calls of a log, oldest first. A second record of a call is merged into it. */
export function explainCalls(records: readonly StoredRecord[]): readonly ExplainedCall[] {
  const calls: ExplainedCall[] = [];
  const resultIds = new Map<string, string>();
  const exchanges = new Map<string, CallTimes>();
  for (const { id, tsMs, record, type } of records) {
    if (type === "message") noteResult(record["message"], id, resultIds);
    const times = timesOfExchange(record);
    if (times !== null) exchanges.set(id, times);
    const part = readCallPart(record);
    if (part?.part === 1) {
      const exchange = exchanges.get(exchangeIdOf(record) ?? "");
      const found = { callId: id, atMs: tsMs, times: exchange ?? timesOfFacts(part.call) };
      calls.push(explained(part.call, found, resultIds));
    } else if (part !== null) {
      const at = calls.findLastIndex(({ facts }) => isSameCall(facts, part));
      const call = calls[at];
      if (call === undefined) continue;
      const { part: _part, ...more } = part;
      calls[at] = explained({ ...call.facts, ...more }, { ...call, times: call }, resultIds);
    }
  }
  return calls;
}

/**
 * Returns where requests begin since the history outgrew the window; null when all of it is sent. A larger window than
 * at the time of the cut includes the whole history again.
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
  // A record of another program may hold any value here.
  if (typeof message !== "object" || message === null) return;
  const { role, toolCallId } = message as { readonly role?: unknown; readonly toolCallId?: unknown };
  if (role === "toolResult" && typeof toolCallId === "string") resultIds.set(toolCallId, id);
}

function explained(
  facts: CallFacts,
  { callId, atMs, times }: Pick<ExplainedCall, "callId" | "atMs"> & { readonly times: CallTimes },
  resultIds: ReadonlyMap<string, string>,
): ExplainedCall {
  const { turnId, step, attempt, provider, model, fromSeq, toSeq, summaryId, estimatedTokens, outcome, actual } = facts;
  const changes = facts.changes.map(({ recordId, callId: resultOf, what, reason, beforeBytes, afterBytes }) => {
    const found = resultOf === null ? null : (resultIds.get(resultOf) ?? null);
    return { recordId: recordId ?? found, what, reason, beforeBytes, afterBytes };
  });
  const { startedMs, firstByteMs, endedMs } = times;
  const place = { callId, turnId, step, attempt, atMs, provider, model, fromSeq, toSeq, summaryId };
  const ended = { startedMs, firstByteMs, endedMs, outcome, actual: usageOf(actual) };
  return { ...place, changes, estimatedTokens, ...ended, facts };
}

function usageOf(actual: CallFacts["actual"]): Usage | null {
  if (actual === null) return null;
  const [input, output, cacheRead, cacheWrite] = actual;
  return { input, output, cacheRead, cacheWrite };
}
