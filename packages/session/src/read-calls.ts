import { setImmediate as pause } from "node:timers/promises";
import { throughlineKind, assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { RecordHead } from "@throughline/core/internal";
import type { SessionRecord, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { readFilesOf } from "./file-contents.ts";
import { mappingFor } from "./session-log.ts";
import { isSameCall, readCallPart, type CallFacts } from "./call-record.ts";
import { exchangeIdOf, timesOfExchange } from "./call-times.ts";
import { explainCalls } from "./explain-calls.ts";
import type { ExplainedCall } from "./explain-calls.ts";

/** Selects calls of a session. Without any field, all calls are selected. */
interface CallQuery {
  /** Selects only the calls of the turn with this id. */
  readonly turn?: string | undefined;
  /** Selects only the last calls; the number is their count. */
  readonly tail?: number | undefined;
  /** Selects only calls whose record has a smaller seq. */
  readonly beforeSeq?: number | undefined;
}

/** Sets the signal and the memory callback of `readCalls`. */
export interface ReadCallsOptions {
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Receives the records that stay in memory when the query selects every call. An error that it throws ends the read.
   */
  readonly onKeep?: ((records: readonly StoredRecord[]) => void) | undefined;
}

/** Surplus records are dropped only after this many, because selecting the needed ones reads all kept records. */
const spareRecords = 1000;

const { callback, integer, signal: signalKind, text } = optionKinds;
export const callQueryTable: OptionTable<CallQuery> = {
  turn: text,
  tail: integer({ min: 0 }),
  beforeSeq: integer({ min: 1 }),
};
export const readCallsTable: OptionTable<ReadCallsOptions> = { signal: signalKind, onKeep: callback };

/**
 * Reads the calls of a session that a query selects, with the tool results that these calls shortened. Only the records
 * of those calls and results stay in memory. The session is read once for the calls, and again for the results when a
 * call names one.
 *
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function readCalls(
  store: SessionStore,
  ref: SessionRef,
  query: CallQuery,
  options: ReadCallsOptions = {},
): Promise<{ readonly shown: readonly ExplainedCall[]; readonly hasCalls: boolean }> {
  assertKnownOptions<ReadCallsOptions>("readCalls", options, readCallsTable);
  assertKnownOptions<CallQuery>("readCalls", query, callQueryTable, "query");
  const { signal, onKeep } = options;
  let kept: StoredRecord[] = [];
  let hasCalls = false;
  const { beforeSeq } = query;
  const readOptions = {
    ...(signal === undefined ? {} : { signal }),
    ...(beforeSeq === undefined ? {} : { beforeSeq }),
  };
  let nextDrop = spareRecords;
  let before: StoredRecord | undefined;
  for await (const { records } of store.read(ref, readOptions)) {
    // A store that answers synchronously would block interrupts until the whole session is read.
    await pause();
    const all = records.filter(({ record }) => throughlineKind(record) === "call");
    hasCalls ||= all.length > 0;
    const wanted = query.turn === undefined ? all : all.filter(({ record }) => turnOf(record) === query.turn);
    const found = withExchanges(wanted, before === undefined ? records : [before, ...records]);
    before = records.at(-1);
    if (query.tail === undefined && query.turn === undefined) onKeep?.(found);
    kept.push(...found);
    if (kept.length < nextDrop) continue;
    kept = neededFor(chosen(explainCalls(kept), query), kept);
    nextDrop = 2 * kept.length + spareRecords;
  }
  const calls = chosen(explainCalls(kept), query);
  const results = await resultsOf(store, ref, calls, readOptions);
  const all = [...results, ...neededFor(calls, kept)].toSorted((one, other) => one.seq - other.seq);
  return { shown: chosen(explainCalls(all), query), hasCalls };
}

/** Holds one call, and the records that its request is rebuilt from. */
export interface FoundCall {
  readonly call: ExplainedCall;
  /** The records begin with the first one of the request, and end with the last one about the call. */
  readonly records: readonly StoredRecord[];
  /** Reads the files of the request, and returns the function that `rebuildSteps` asks for them. */
  readonly loadFiles: () => Promise<(fileId: string) => Uint8Array | null | undefined>;
}

/**
 * Reads one call: the records of its request, its own record, and its second record. Records before or after these are
 * not read. Null when the record is not that of a call.
 *
 * @param head the record that `callId` of an `ExplainedCall` names
 * @throws {ThroughlineError} ABORTED, and what the store throws
 */
export async function readCall(
  store: SessionStore,
  ref: SessionRef,
  { seq, id }: Pick<RecordHead, "seq" | "id">,
  options: { readonly signal?: AbortSignal } = {},
): Promise<FoundCall | null> {
  const own: StoredRecord[] = [];
  for await (const { records } of store.read(ref, { ...options, afterSeq: seq - 1, limit: 1 })) own.push(...records);
  const [first] = own;
  const part = first === undefined ? null : readCallPart(first.record);
  if (first?.id !== id || part?.part !== 1) return null;
  const before: StoredRecord[] = [];
  const given = { ...options, afterSeq: Math.max(0, part.call.fromSeq - 1), beforeSeq: seq };
  for await (const { records } of store.read(ref, given)) before.push(...records);
  if (part.hasMore) own.push(...(await furtherParts(store, ref, part.call, { ...options, afterSeq: seq })));
  const records = [...before, ...own];
  const call = explainCalls(records).find(({ callId }) => callId === id);
  if (call === undefined) return null;
  const loadFiles = async (): ReturnType<FoundCall["loadFiles"]> =>
    readFilesOf({ store, ref }, records, mappingFor(call.facts.api).rules);
  return { call, records, loadFiles };
}

/** The second record of a call is written before the next call, so the search ends there. */
async function furtherParts(
  store: SessionStore,
  ref: SessionRef,
  call: CallFacts,
  options: { readonly afterSeq: number; readonly signal?: AbortSignal },
): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = [];
  for await (const { records } of store.read(ref, options)) {
    for (const stored of records) {
      const next = readCallPart(stored.record);
      if (next === null) continue;
      if (next.part === 1 || !isSameCall(next, call)) return found;
      found.push(stored);
    }
  }
  return found;
}

function turnOf({ data }: SessionRecord): unknown {
  return typeof data === "object" && data !== null ? (data as { readonly turnId?: unknown }).turnId : undefined;
}

function chosen(calls: readonly ExplainedCall[], { turn, tail }: CallQuery): readonly ExplainedCall[] {
  const ofTurn = turn === undefined ? calls : calls.filter(({ turnId }) => turnId === turn);
  return tail === undefined ? ofTurn : ofTurn.slice(-tail);
}

/** A gateway appends the exchange of a call right before the call. Only its times are needed, and a frame may be large. */
function withExchanges(calls: readonly StoredRecord[], records: readonly StoredRecord[]): readonly StoredRecord[] {
  const wanted = new Set(calls.map(({ record }) => exchangeIdOf(record)));
  wanted.delete(null);
  if (wanted.size === 0) return calls;
  const exchanges = records.filter(({ id }) => wanted.has(id)).map(onlyTimes);
  return [...exchanges, ...calls].toSorted((one, other) => one.seq - other.seq);
}

function onlyTimes(stored: StoredRecord): StoredRecord {
  return { ...stored, record: { ...stored.record, data: timesOfExchange(stored.record) } };
}

/**
 * A second record follows the record of its call, so every record from the first call on is kept, and the exchange
 * before it.
 */
function neededFor(calls: readonly ExplainedCall[], records: readonly StoredRecord[]): StoredRecord[] {
  const [first] = calls;
  const from = first === undefined ? records.length : records.findIndex(({ id }) => id === first.callId);
  const own = records[from];
  const exchangeId = own === undefined ? null : exchangeIdOf(own.record);
  return records.slice(exchangeId !== null && records[from - 1]?.id === exchangeId ? from - 1 : from);
}

/** The changes of a call name tool results by call id only, so their records must be found. */
async function resultsOf(
  store: SessionStore,
  ref: SessionRef,
  calls: readonly ExplainedCall[],
  readOptions: { readonly signal?: AbortSignal },
): Promise<readonly StoredRecord[]> {
  const wanted = new Set(calls.flatMap(({ facts }) => facts.changes.flatMap(({ callId }) => callId ?? [])));
  const results: StoredRecord[] = [];
  if (wanted.size === 0) return [];
  for await (const { records } of store.read(ref, readOptions)) {
    await pause();
    for (const stored of records) {
      const message = stored.type === "message" ? (stored.record["message"] as { toolCallId?: unknown } | null) : null;
      const callId = message?.toolCallId;
      if (typeof callId === "string" && wanted.has(callId)) results.push(stored);
    }
  }
  return results;
}
