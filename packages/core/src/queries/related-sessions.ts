import { earlierIds } from "../open-session.ts";
import type { SessionEntry } from "../session-entry.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { hasErrorCode } from "../throughline-error.ts";
import { createWorkSlices, sliceSteps } from "../work-slices.ts";
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

/** A store may read a page in one step. 100 sessions keep it below 20 ms. */
const pageSessions = 100;
/** Clocks of machines differ, and some programs write when a file was begun. */
const slackMs = 24 * 60 * 60_000;

/**
 * Finds what came from a session, in every state, among the sessions that were active last. Whatever came from it was
 * active after it began, so older sessions are not looked at where its beginning is known. Other work gets its turn
 * between two pages.
 * @param agentId limits the search to sessions of this agent
 * @param most limits the sessions that are looked at
 */
export async function relatedSessions(
  store: SessionStore,
  session: SessionState,
  { agentId, most, signal }: { readonly agentId?: string; readonly most: number; readonly signal: AbortSignal },
): Promise<RelatedSessions> {
  const { ref, sessionId, entry, archived, createdAtMs } = session;
  const children: SessionState[] = [];
  const forks: SessionState[] = [];
  const originId = memberText(entry["forkedFrom"], "sessionId");
  let origin = originId === null ? null : await originAtItsKey(store, session, originId, { agentId, signal });
  let looked = 0;
  const slices = createWorkSlices();
  // The origin of a fork began before it. One that is no longer at its key is searched among all.
  const isBounded = (originId === null || origin !== null) && (archived || hasKeyFromItsStart(entry));
  const sinceMs = isBounded ? Math.max(0, createdAtMs - slackMs) : 0;
  const scope = agentId === undefined ? {} : { agentId };
  const query = { namespace: ref.namespace, state: "any", limit: pageSessions, sinceMs, signal, ...scope } as const;
  for await (const state of listSessions(store, query)) {
    if (++looked > most) return { children, forks, origin, isComplete: false };
    if (looked % pageSessions === 0) await slices.next(sliceSteps);
    if (state.sessionId === sessionId) continue;
    // The key of an archived session belongs to the current one, which spawned the children.
    if (!archived && state.entry.spawnedBy === ref.key) children.push(state);
    if (memberText(state.entry["forkedFrom"], "sessionId") === sessionId) forks.push(state);
    if (state.sessionId === originId) origin = state;
  }
  return { children, forks, origin, isComplete: true };
}

/**
 * Children name a key. After a reset, the key is older than its session, and so are its first children. An import may
 * have found no start in its source.
 */
function hasKeyFromItsStart(entry: SessionEntry): boolean {
  return earlierIds(entry.previousSessionIds).length === 0 && (entry["importedFrom"] ?? null) === null;
}

/** An origin that is not at the key of the fork is searched by its id. */
async function originAtItsKey(
  store: SessionStore,
  { ref, entry }: SessionState,
  originId: string,
  { agentId, signal }: { readonly agentId: string | undefined; readonly signal: AbortSignal },
): Promise<SessionState | null> {
  const key = memberText(entry["forkedFrom"], "key");
  const owner = memberText(entry["forkedFrom"], "agentId") ?? ref.agentId;
  if (key === null || (agentId !== undefined && owner !== agentId)) return null;
  const found = await loadNamed(store, { namespace: ref.namespace, agentId: owner, key }, signal);
  return found?.sessionId === originId ? found : null;
}

/**
 * Loads the session that an entry names, such as its parent. Clients and imports state it, so the address may be one
 * that no store takes, or of another agent. Null stands for such an address too.
 */
export async function loadNamed(
  store: SessionStore,
  ref: SessionRef,
  signal: AbortSignal,
): Promise<SessionState | null> {
  try {
    return await store.load(ref, { signal });
  } catch (error) {
    if (hasErrorCode(error, "AGENT_ID_INVALID", "INPUT_INVALID", "KEY_AGENT_MISMATCH", "KEY_INVALID")) return null;
    throw error;
  }
}
