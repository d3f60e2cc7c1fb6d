import { setImmediate as pause } from "node:timers/promises";
import { throughlineKind } from "@throughline/core";
import type { SessionRecord, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { explainCalls } from "@throughline/session/explain";
import type { ExplainedCall } from "@throughline/session/explain";
import { MemoryBudget } from "@throughline/queries/records";

/** Which calls are wanted. */
export interface CallQuery {
  readonly turn?: string;
  readonly tail?: number;
}

/** How many surplus call records are kept before the oldest are dropped. */
const spareRecords = 1000;

/**
 * The calls of a session that are wanted, with the results they shortened. Only the records of those calls and results
 * are kept: the session is read once for the calls, and again for the results where a call names one.
 */
export async function readCalls(
  store: SessionStore,
  ref: SessionRef,
  query: CallQuery,
  signal: AbortSignal,
): Promise<{ readonly shown: readonly ExplainedCall[]; readonly hasCalls: boolean }> {
  let kept: StoredRecord[] = [];
  let hasCalls = false;
  const budget = new MemoryBudget(ref);
  let nextDrop = spareRecords;
  for await (const { records } of store.read(ref, { signal })) {
    await pause();
    const all = records.filter(({ record }) => throughlineKind(record) === "call");
    hasCalls ||= all.length > 0;
    const found = query.turn === undefined ? all : all.filter(({ record }) => turnOf(record) === query.turn);
    if (query.tail === undefined && query.turn === undefined) budget.add(found);
    kept.push(...found);
    if (kept.length < nextDrop) continue;
    kept = neededFor(chosen(explainCalls(kept), query), kept);
    nextDrop = 2 * kept.length + spareRecords;
  }
  const calls = chosen(explainCalls(kept), query);
  const results = await resultsOf(store, ref, calls, signal);
  const all = [...results, ...neededFor(calls, kept)].toSorted((one, other) => one.seq - other.seq);
  return { shown: chosen(explainCalls(all), query), hasCalls };
}

function turnOf({ data }: SessionRecord): unknown {
  return typeof data === "object" && data !== null ? (data as { readonly turnId?: unknown }).turnId : undefined;
}

function chosen(calls: readonly ExplainedCall[], { turn, tail }: CallQuery): readonly ExplainedCall[] {
  const ofTurn = turn === undefined ? calls : calls.filter(({ turnId }) => turnId === turn);
  return tail === undefined ? ofTurn : ofTurn.slice(-tail);
}

/** The records from the first of these calls on; further parts of a call come behind it. */
function neededFor(calls: readonly ExplainedCall[], records: readonly StoredRecord[]): StoredRecord[] {
  const [first] = calls;
  const from = first === undefined ? records.length : records.findIndex(({ id }) => id === first.callId);
  return records.slice(from);
}

/** The tool results that calls name by the id of the tool's call. */
async function resultsOf(
  store: SessionStore,
  ref: SessionRef,
  calls: readonly ExplainedCall[],
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const wanted = new Set(calls.flatMap(({ facts }) => facts.changes.flatMap(({ callId }) => callId ?? [])));
  const results: StoredRecord[] = [];
  if (wanted.size === 0) return [];
  for await (const { records } of store.read(ref, { signal })) {
    await pause();
    for (const stored of records) {
      const message = stored.type === "message" ? (stored.record["message"] as { toolCallId?: unknown } | null) : null;
      const callId = message?.toolCallId;
      if (typeof callId === "string" && wanted.has(callId)) results.push(stored);
    }
  }
  return results;
}
