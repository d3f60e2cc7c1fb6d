import { assertStoreOptions } from "../store-option-tables.ts";
import type { ListQuery, SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";

/** Holds the totals of the sessions that a query selects. */
export interface SessionTotals {
  /** Counts the agents that have at least one of the sessions. */
  readonly agents: number;
  /** Counts the active sessions. */
  readonly sessions: number;
  /** Counts the archived sessions. */
  readonly archivedSessions: number;
  /** Counts the records of all sessions, including archived sessions. */
  readonly records: number;
  /** Counts the messages of all sessions, including archived sessions. */
  readonly messages: number;
  /** States when the first session was created, in UTC milliseconds. Null without a session. */
  readonly firstAtMs: number | null;
  /** States when any of the sessions was last active, in UTC milliseconds. Null without a session. */
  readonly lastAtMs: number | null;
}

/**
 * Counts the sessions of a query from the store's index alone, without reading records. Archived sessions are counted
 * too, unless the query sets `state`.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong query, and what the store throws
 */
export async function sessionTotals(store: SessionStore, query: ListQuery): Promise<SessionTotals> {
  assertStoreOptions("list", query);
  const agents = new Set<string>();
  let [sessions, archivedSessions, records, messages] = [0, 0, 0, 0];
  let firstAtMs: number | null = null;
  let lastAtMs: number | null = null;
  for await (const state of listSessions(store, { state: "any", sort: "key", limit: 1000, ...query })) {
    if (state.archived) archivedSessions += 1;
    else sessions += 1;
    records += state.head.lastSeq;
    messages += state.messageCount;
    agents.add(state.ref.agentId);
    firstAtMs = Math.min(firstAtMs ?? state.createdAtMs, state.createdAtMs);
    lastAtMs = Math.max(lastAtMs ?? state.updatedAtMs, state.updatedAtMs);
  }
  return { agents: agents.size, sessions, archivedSessions, records, messages, firstAtMs, lastAtMs };
}
