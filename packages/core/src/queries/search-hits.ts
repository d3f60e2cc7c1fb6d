import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import type { SearchFacet, SearchHit, SearchQuery } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";
import { scanRecords, type ScanOptions } from "./scan-records.ts";

export const mostIndexedHits = 1000;

/** Sets the text to search for, and limits which sessions and records are searched. */
export interface HitQuery extends ScanOptions {
  /** Sets the namespace whose sessions are searched; `""` is the default namespace. */
  readonly namespace: string;
  /** Limits the search to the sessions of one agent; null searches all agents. */
  readonly agentId: string | null;
  /** Sets which sessions are searched; `any` includes archived sessions. */
  readonly state: "active" | "any";
  /** Limits the search to one session, whatever its agent and state; null searches all sessions of the query. */
  readonly session: SessionState | null;
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
  role: text,
  tool: text,
  sinceMs: number(),
  untilMs: number(),
  signal: required(signalKind),
  onSession: callback,
  namespace: required(text),
  agentId: required(orNull(text)),
  state: required(oneOf(["active", "any"])),
  session: required(orNull(object)),
  limit: required(number({ min: 1 })),
  isScan: required(flag),
};

/**
 * Searches records. The store's index returns the best hits. A store without an index, or a query with `isScan`, reads
 * every record.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong field of the query; the hits throw what the store throws
 */
export function searchHits(store: SessionStore, query: HitQuery): FoundHits {
  assertKnownOptions<HitQuery>("searchHits", query, hitTable, "query");
  const { namespace, agentId, state, session, limit, isScan, onSession, ...filters } = query;
  if (store.search === undefined || isScan) {
    const sessions =
      session === null
        ? listSessions(store, {
            namespace,
            ...(agentId === null ? {} : { agentId }),
            state,
            limit: 100,
            signal: query.signal,
          })
        : only(session);
    const options = { ...filters, ...(onSession === undefined ? {} : { onSession }) };
    return { index: null, hits: scanRecords(store, sessions, options) };
  }
  const agent = session?.ref.agentId ?? agentId;
  const searched: SearchQuery = {
    ...filters,
    namespace,
    limit: Math.min(mostIndexedHits, limit),
    // Archived sessions may share the key, so the id selects one session.
    ...(session === null ? { state } : { state: "any", key: session.ref.key, sessionId: session.sessionId }),
    ...(agent === null ? {} : { agentId: agent }),
  };
  return { index: store.search, hits: store.search.search(searched) };
}

async function* only(state: SessionState): AsyncGenerator<SessionState, void, void> {
  yield state;
}
