import { assertStoreOptions } from "../store-option-tables.ts";
import type { ListQuery, SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";

/** What the sessions of a query hold together. */
export interface SessionTotals {
  /** How many agents have at least one of the sessions. */
  readonly agents: number;
  /** How many sessions are active. */
  readonly sessions: number;
  /** How many sessions are archived. */
  readonly archivedSessions: number;
  /** How many records all sessions hold, archived ones included. */
  readonly records: number;
  /** How many messages all sessions hold, archived ones included. */
  readonly messages: number;
  /** When the first of them began; null without a session. */
  readonly firstAtMs: number | null;
  /** When the last of them was used; null without a session. */
  readonly lastAtMs: number | null;
}

/**
 * Counts the sessions of a query, archived ones too unless it says otherwise, by the store's index alone.
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
