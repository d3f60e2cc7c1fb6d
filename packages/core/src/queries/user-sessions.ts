import { refused } from "../refused.ts";
import { agentOfKey, sessionKeyAliases } from "../session-key.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { listSessions } from "./resolve-session.ts";
import { memberText } from "./session-row.ts";

/** Names the sessions of a user: a namespace of its own, or the beginning of keys. */
export interface UserSessions {
  /** Names the namespace. Without `keyPrefix`, all of its sessions are the user's, and it must not be "". */
  readonly namespace: string;
  /**
   * Holds whole parts of a key, such as `agent:main:web:direct:user-42`: this key, and keys that continue it with a
   * colon. Null takes the whole namespace.
   */
  readonly keyPrefix: string | null;
}

/** Names a session of a user, and how it was found. */
export interface UserSession {
  /** States the address of the session. */
  readonly ref: SessionRef;
  /** States the id of the session. */
  readonly sessionId: string;
  /** States that the key fits, or that the session is a fork of such a session, or was spawned by one. */
  readonly because: "key" | "fork" | "spawned";
}

const pageSessions = 1000;
const leastParts = 3;

/** @throws {ThroughlineError} INPUT_INVALID for a user that would be everybody */
export function assertUser({ namespace, keyPrefix }: UserSessions): void {
  if (keyPrefix === null && namespace === "")
    throw refused("INPUT_INVALID", 'The namespace "" may hold the sessions of every user. Name a key prefix.', {
      argument: "namespace",
    });
  if (keyPrefix === null) return;
  const parts = keyPrefix.split(":");
  const isShort = parts[0] === "agent" && parts.length < leastParts;
  if (isShort || parts.includes(""))
    throw refused(
      "INPUT_INVALID",
      `${JSON.stringify(keyPrefix)} names no user: give whole parts of a key behind the agent.`,
      {
        argument: "keyPrefix",
        keyPrefix,
      },
    );
}

/**
 * Finds the sessions of a user in every state, with their forks and the sessions that they spawned. A session comes
 * after the one that it was made from. All sessions of the namespace are listed, because a fork may have any key.
 */
export async function findUserSessions(
  store: SessionStore,
  { namespace, keyPrefix }: UserSessions,
  signal?: AbortSignal,
): Promise<readonly UserSession[]> {
  const prefixes = keyPrefix === null ? null : spellings(keyPrefix);
  const found: UserSession[] = [];
  const forks = new Map<string, SessionState[]>();
  const spawned = new Map<string, SessionState[]>();
  const query = { namespace, state: "any", sort: "key", limit: pageSessions } as const;
  for await (const state of listSessions(store, { ...query, ...(signal === undefined ? {} : { signal }) })) {
    const { ref, sessionId, entry } = state;
    if (prefixes === null || prefixes.some((prefix) => isBelow(ref.key, prefix))) {
      found.push({ ref, sessionId, because: "key" });
      continue;
    }
    const origin = memberText(entry["forkedFrom"], "sessionId");
    if (origin !== null) addTo(forks, origin, state);
    if (typeof entry.spawnedBy === "string") addTo(spawned, entry.spawnedBy, state);
  }
  const known = new Set<string>();
  // The list grows while it is read, because a fork may have forks.
  for (const { ref, sessionId } of found) {
    const made = [
      ...(forks.get(sessionId) ?? []).map((state) => ({ state, because: "fork" as const })),
      ...(spawned.get(ref.key) ?? []).map((state) => ({ state, because: "spawned" as const })),
    ];
    for (const { state, because } of made) {
      const name = JSON.stringify([state.ref.agentId, state.sessionId]);
      if (!known.has(name)) found.push({ ref: state.ref, sessionId: state.sessionId, because });
      known.add(name);
    }
  }
  return found;
}

/** A key that says `dm` and one that says `direct` name the same session. */
function spellings(keyPrefix: string): readonly string[] {
  return agentOfKey(keyPrefix) === null ? [keyPrefix] : sessionKeyAliases(keyPrefix);
}

function isBelow(key: string, prefix: string): boolean {
  return key === prefix || key.startsWith(`${prefix}:`);
}

function addTo(lists: Map<string, SessionState[]>, name: string, state: SessionState): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [state]);
  else list.push(state);
}
