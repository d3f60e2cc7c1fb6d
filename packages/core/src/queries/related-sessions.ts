import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";
import { memberText } from "./session-row.ts";

/** Holds the sessions that came from another one. */
interface RelatedSessions {
  /** Lists the sessions that it spawned. */
  readonly children: readonly SessionState[];
  /** Lists its forks. */
  readonly forks: readonly SessionState[];
  /** Holds the session that it is a fork of, if it is among those that were looked at. */
  readonly origin: SessionState | null;
  /** False when the store has more sessions than were looked at. */
  readonly isComplete: boolean;
}

const pageSessions = 1000;

/**
 * Finds what came from a session, in every state, among the sessions that were active last.
 * @param agentId limits the search to sessions of this agent
 * @param most limits the sessions that are looked at
 */
export async function relatedSessions(
  store: SessionStore,
  { ref, sessionId, entry, archived }: SessionState,
  { agentId, most, signal }: { readonly agentId?: string; readonly most: number; readonly signal: AbortSignal },
): Promise<RelatedSessions> {
  const children: SessionState[] = [];
  const forks: SessionState[] = [];
  const originId = memberText(entry["forkedFrom"], "sessionId");
  let origin: SessionState | null = null;
  let looked = 0;
  const query = { namespace: ref.namespace, state: "any", limit: pageSessions, signal } as const;
  for await (const state of listSessions(store, agentId === undefined ? query : { ...query, agentId })) {
    if (++looked > most) return { children, forks, origin, isComplete: false };
    if (state.sessionId === sessionId) continue;
    // The key of an archived session belongs to the current one, which spawned the children.
    if (!archived && state.entry.spawnedBy === ref.key) children.push(state);
    if (memberText(state.entry["forkedFrom"], "sessionId") === sessionId) forks.push(state);
    if (state.sessionId === originId) origin = state;
  }
  return { children, forks, origin, isComplete: true };
}
