import { setImmediate as pause } from "node:timers/promises";
import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import type { SearchFacet, SearchHit, SearchQuery } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";
import { parseSearch } from "../search-plan.ts";
import { passesRecord, scanRecords, type ScanOptions } from "./scan-records.ts";

export const mostIndexedHits = 1000;

/** Sets the text to search for, and limits which sessions and records are searched. */
export interface HitQuery extends Omit<ScanOptions, "most"> {
  /** Sets the namespace whose sessions are searched; `""` is the default namespace. */
  readonly namespace: string;
  /** Limits the search to the sessions of one agent; null searches all agents. */
  readonly agentId: string | null;
  /** Sets which sessions are searched; `any` includes archived sessions. */
  readonly state: "active" | "any";
  /** Limits the search to one session, whatever its agent and state; null searches all sessions of the query. */
  readonly session: SessionState | null;
  /** Limits the search to some sessions of the query. @default all */
  readonly isWanted?: (state: SessionState) => boolean;
  /** Limits the hits of an index, up to 1,000. A scan ignores the limit and yields every hit. */
  readonly limit: number;
  /** Reads every record even when the store has an index. */
  readonly isScan: boolean;
}

/** Holds the hits of a search, and the index that found them. */
export interface FoundHits {
  /** Holds the index that answers; null means that every record is read. */
  readonly index: SearchFacet | null;
  /** Yields the hits. An index yields the best hit first, a scan yields hits in the order of the sessions. */
  readonly hits: AsyncIterable<SearchHit>;
}

const { callback, flag, number, object, oneOf, orNull, required, signal: signalKind, text } = optionKinds;
const hitTable: OptionTable<HitQuery> = {
  text: required(text),
  anyOf: optionKinds.listOf(text),
  role: text,
  tool: text,
  sinceMs: number(),
  untilMs: number(),
  signal: required(signalKind),
  isError: flag,
  file: text,
  isWanted: callback,
  onCut: callback,
  onSession: callback,
  namespace: required(text),
  agentId: required(orNull(text)),
  state: required(oneOf(["active", "any"])),
  session: required(orNull(object)),
  limit: required(number({ min: 1 })),
  isScan: required(flag),
};

/** Limits a search without words, which no index answers: records in all, and the newest of each session. */
const mostScanned = { records: 50_000, ofSession: 2000 };
const listStep = 100;
/** Limits the sessions that are searched one by one when the best hits of all sessions are not of them. */
const mostSearched = 200;
/** A search for any of some words finds something in most sessions, so it ends with this number of hits. */
const enoughOfAny = 100;

/**
 * Searches records. The store's index returns the best hits. A store without an index, or a query with `isScan`, reads
 * every record. A query without words reads the newest 2,000 records of each session, and 50,000 in all, unless
 * `isScan` is set.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong field of the query; the hits throw what the store throws
 */
export function searchHits(store: SessionStore, query: HitQuery): FoundHits {
  assertKnownOptions<HitQuery>("searchHits", query, hitTable, "query");
  const { isScan, limit, text, file, anyOf } = query;
  // The name of the file stands in the call that writes it, so the index finds the call.
  const name = file === undefined ? "" : fileName(file);
  const indexed = name === "" ? text : `${text} "${name}"`;
  const hasWords = anyOf === undefined ? parseSearch(indexed).clauses.length > 0 : anyOf.length > 0;
  if (store.search !== undefined && !isScan && hasWords) {
    const searched = searchOf(query, indexed);
    const isNarrowed = query.isWanted !== undefined || query.isError === true || file !== undefined;
    const hits = isNarrowed
      ? narrowedHits(store, store.search, query, { ...searched, limit: mostIndexedHits })
      : store.search.search({ ...searched, limit: Math.min(mostIndexedHits, limit) });
    return { index: store.search, hits };
  }
  const most = isScan || hasWords ? {} : { most: mostScanned };
  return { index: null, hits: scanRecords(store, sessionsOf(store, query), { ...scanOf(query), ...most }) };
}

function fileName(path: string): string {
  return (path.split(/[/\\]/).findLast((part) => part !== "") ?? "").replaceAll('"', " ");
}

function searchOf({ role, tool, sinceMs, untilMs, ...query }: HitQuery, text: string): SearchQuery {
  const { namespace, agentId, state, session, signal, anyOf } = query;
  const agent = session?.ref.agentId ?? agentId;
  return {
    ...(anyOf === undefined ? { text } : { anyOf }),
    namespace,
    signal,
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
    // Archived sessions may share the key, so the id selects one session.
    ...(session === null ? { state } : { state: "any", key: session.ref.key, sessionId: session.sessionId }),
    ...(agent === null ? {} : { agentId: agent }),
  };
}

function scanOf(query: HitQuery): ScanOptions {
  const { namespace: _n, agentId: _a, state: _s, session: _o, limit: _l, isScan: _i, isWanted: _w, ...scan } = query;
  return scan;
}

/** Yields the sessions of a query, the newest first. */
async function* sessionsOf(
  store: SessionStore,
  { namespace, agentId, state, session, isWanted, signal }: HitQuery,
): AsyncGenerator<SessionState, void, void> {
  if (session !== null) {
    if (isWanted === undefined || isWanted(session)) yield session;
    return;
  }
  const agent = agentId === null ? {} : { agentId };
  let number = 0;
  for await (const each of listSessions(store, { namespace, ...agent, state, limit: listStep, signal })) {
    // A store that answers without waiting would block interrupts while it passes over sessions.
    if (++number % listStep === 0) await pause();
    if (isWanted === undefined || isWanted(each)) yield each;
  }
}

/**
 * Yields the hits of an index that pass the filters which the index does not know. If the best hits do not reach the
 * limit, each wanted session is searched by itself, the newest first.
 */
async function* narrowedHits(
  store: SessionStore,
  index: SearchFacet,
  query: HitQuery,
  searched: SearchQuery,
): AsyncGenerator<SearchHit, void, void> {
  const { limit, isWanted, session, onCut, anyOf } = query;
  const enough = anyOf === undefined ? limit : Math.min(limit, enoughOfAny);
  const filter = new HitFilter(store, query);
  const seen = new Set<string>();
  let [count, yielded] = [0, 0];
  for await (const hit of index.search(searched)) {
    count += 1;
    seen.add(`${hit.sessionId} ${hit.seq}`);
    if (!(await filter.passes(hit))) continue;
    yield hit;
    if (++yielded >= limit) return;
  }
  if (count < mostIndexedHits) return;
  if (isWanted === undefined || session !== null) return onCut?.();
  let number = 0;
  for await (const state of sessionsOf(store, query)) {
    if (++number > mostSearched || yielded >= enough) return onCut?.();
    for await (const hit of hitsOfSession(store, index, state, { query, searched })) {
      if (seen.has(`${hit.sessionId} ${hit.seq}`) || !(await filter.passes(hit))) continue;
      yield hit;
      if (++yielded >= limit) return;
    }
  }
}

/**
 * Yields the hits of one session. To find them, an index may go through all records with the words, so a session of
 * usual size is read instead. Its hits rank behind those of the index.
 */
async function* hitsOfSession(
  store: SessionStore,
  index: SearchFacet,
  state: SessionState,
  { query, searched }: { readonly query: HitQuery; readonly searched: SearchQuery },
): AsyncGenerator<SearchHit, void, void> {
  if (state.head.lastSeq <= mostScanned.ofSession) {
    // The filters that are not words apply to the hits of both ways.
    const { file: _file, isError: _isError, ...scan } = scanOf(query);
    for await (const hit of scanRecords(store, only(state), { ...scan, text: searched.text ?? "" }))
      yield { ...hit, score: 0 };
    return;
  }
  const { ref, sessionId } = state;
  let count = 0;
  const one = { ...searched, agentId: ref.agentId, key: ref.key, sessionId, state: "any" as const };
  for await (const hit of index.search(one)) {
    count += 1;
    yield hit;
  }
  if (count >= mostIndexedHits) query.onCut?.();
}

async function* only(state: SessionState): AsyncGenerator<SessionState, void, void> {
  yield state;
}

/** Loads each session of the hits once, and a record only where a filter needs it. */
class HitFilter {
  readonly #store: SessionStore;
  readonly #query: HitQuery;
  readonly #states = new Map<string, SessionState | null>();

  constructor(store: SessionStore, query: HitQuery) {
    this.#store = store;
    this.#query = query;
  }

  async passes({ ref, sessionId, seq }: SearchHit): Promise<boolean> {
    const { isWanted, isError, file, signal } = this.#query;
    const known = this.#states.get(sessionId);
    const state = known === undefined ? await this.#store.load(ref, { signal }) : known;
    this.#states.set(sessionId, state);
    if (state === null || state.sessionId !== sessionId || isWanted?.(state) === false) return false;
    if (isError !== true && file === undefined) return true;
    for await (const { records } of this.#store.read(ref, { afterSeq: seq - 1, limit: 1, signal }))
      for (const { seq: at, record } of records)
        if (at === seq) return passesRecord(record, this.#query, state.entry.cwd);
    return false;
  }
}
