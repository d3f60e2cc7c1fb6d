import { assertKnownOptions, optionKinds, type OptionTable } from "../option-checks.ts";
import type { SearchFacet, SearchHit, SearchQuery } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";
import { scanRecords, type ScanOptions } from "./scan-records.ts";

/** The most hits that an index gives. */
export const mostIndexedHits = 1000;

/** What is searched for, and where. */
export interface HitQuery extends ScanOptions {
  /** The namespace whose sessions are searched; `""` is the default one. */
  readonly namespace: string;
  /** The sessions of one agent; null: of all. */
  readonly agentId: string | null;
  /** `any` includes archived sessions. */
  readonly state: "active" | "any";
  /** The only session that is searched, whatever its agent and state; null: all of the query. */
  readonly session: SessionState | null;
  /** The most hits of an index, up to 1,000. A scan gives every hit, as it is found. */
  readonly limit: number;
  /** Reads every record although the store has an index. */
  readonly isScan: boolean;
}

/** Hits, and where they come from. */
export interface FoundHits {
  /** The index that answers; null when every record is read. */
  readonly index: SearchFacet | null;
  /** The hits, best first from an index, else in the order of the sessions as they are found. */
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
 * Searches records: the best hits by the store's index, or all of them by reading where it has none or a scan is asked for.
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
    // A key may have archived sessions too; the id names one.
    ...(session === null ? { state } : { state: "any", key: session.ref.key, sessionId: session.sessionId }),
    ...(agent === null ? {} : { agentId: agent }),
  };
  return { index: store.search, hits: store.search.search(searched) };
}

async function* only(state: SessionState): AsyncGenerator<SessionState, void, void> {
  yield state;
}
