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
  const ids: unknown = entry.previousSessionIds;
  const known = Array.isArray(ids) ? ids.filter((id) => typeof id === "string" && id !== "") : [];
  for (const sessionId of known.toReversed() as string[])
    yield { sessionId, state: await store.load({ ...ref, archiveId: sessionId }, { signal }) };
}
