import type { SessionState, SessionStore } from "@throughline/core";

/** A session that a reset archived under the key. */
export interface EarlierSession {
  readonly sessionId: string;
  /** Null: it is not under the key any more, because it was purged or renamed. */
  readonly state: SessionState | null;
}

/** The sessions that the key had before this one, newest first. Each one is loaded when it is asked for. */
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

/** The line above the records of an earlier session. */
export function earlierHeading({ sessionId, state }: EarlierSession): string {
  return `Earlier session ${sessionId}${state === null ? ": it is not under this key any more" : ", before a reset"}`;
}

/** The line between earlier sessions and the one that is shown. */
export function currentHeading(sessionId: string): string {
  return `Session ${sessionId}`;
}
