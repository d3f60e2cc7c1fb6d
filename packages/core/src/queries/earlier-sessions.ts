import { earlierIds } from "../open-session.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";

export interface EarlierSession {
  readonly sessionId: string;
  /** Null if the key no longer has it, because it was purged or renamed. */
  readonly state: SessionState | null;
}

/** Yields the key's earlier sessions, newest first. Each one is loaded on demand. */
export async function* earlierSessions(
  store: SessionStore,
  { ref, entry }: SessionState,
  signal: AbortSignal,
): AsyncGenerator<EarlierSession, void, void> {
  const known = earlierIds(entry.previousSessionIds).filter((id) => id !== "");
  for (const sessionId of known.toReversed())
    yield { sessionId, state: await store.load({ ...ref, archiveId: sessionId }, { signal }) };
}
