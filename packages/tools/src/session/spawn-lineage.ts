import { sessionRef, type SessionRef, ThroughlineError } from "@throughline/core";
import type { SessionState, SessionStore } from "@throughline/core";

/** Spawning cannot create a longer chain, so a longer chain counts as circular. */
const longestLineage = 64;

export interface SpawnLineage {
  /**
   * The parent comes first, the root last. The list ends where an ancestor is gone, or would belong to another agent.
   */
  readonly ancestors: readonly SessionState[];
  /** The chain leads back into itself or never ends, which spawning cannot cause. */
  readonly isCircular: boolean;
}

/** Follows `spawnedBy` from a session upward, never out of its agent and namespace. Each ancestor costs one load. */
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

/** Returns null for a value that names no session of the same agent. */
function parentRef({ namespace, agentId }: SessionRef, key: unknown): SessionRef | null {
  if (typeof key !== "string" || key === "") return null;
  try {
    return sessionRef({ namespace, agentId, key });
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}
