import { sessionRef, type SessionRef, ThroughlineError } from "@throughline/core";
import type { SessionState, SessionStore } from "@throughline/core";

/** A chain that is longer was not made by spawning. */
const longestLineage = 64;

/** The sessions a session descends from, by `spawnedBy`. */
export interface SpawnLineage {
  /** Its parent first, its root last. Ends where an ancestor is gone, or would belong to another agent. */
  readonly ancestors: readonly SessionState[];
  /** The chain leads back into itself, or never ends: nobody can have spawned that. */
  readonly isCircular: boolean;
}

/** Follows `spawnedBy` from a session upwards, never out of its agent and namespace. One load for each ancestor. */
export async function spawnLineage(
  store: SessionStore,
  { ref, entry }: Pick<SessionState, "ref" | "entry">,
  signal?: AbortSignal,
): Promise<SpawnLineage> {
  const ancestors: SessionState[] = [];
  const seen = new Set([ref.key]);
  for (let parent = parentRef(ref, entry["spawnedBy"]); parent !== null;) {
    if (seen.has(parent.key) || ancestors.length === longestLineage) return { ancestors, isCircular: true };
    seen.add(parent.key);
    const state = await store.load(parent, signal === undefined ? {} : { signal });
    if (state === null) break;
    ancestors.push(state);
    parent = parentRef(ref, state.entry["spawnedBy"]);
  }
  return { ancestors, isCircular: false };
}

/** Null for what names no session of the same agent. */
function parentRef({ namespace, agentId }: SessionRef, key: unknown): SessionRef | null {
  if (typeof key !== "string" || key === "") return null;
  try {
    return sessionRef({ namespace, agentId, key });
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}
