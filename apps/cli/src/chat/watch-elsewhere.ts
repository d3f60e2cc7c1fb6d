import { followRecords } from "@throughline/core/internal";
import type { SessionRef, SessionStore } from "@throughline/core";

interface WatchedSession {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  /** Numbers the last record that this conversation knows. */
  readonly afterSeq: number;
}

/**
 * Calls back once when another program appends a message, until the returned function is called. Notes of this program's
 * own work in the background are no messages.
 */
export function watchElsewhere({ store, ref, afterSeq }: WatchedSession, onChange: () => void): () => Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  const watching = (async (): Promise<void> => {
    for await (const records of followRecords(store, ref, { afterSeq, signal })) {
      if (!records.some(({ type, side }) => type === "message" && !side)) continue;
      if (!signal.aborted) onChange();
      return;
    }
  })();
  // The next command reads the same store, and reports why it cannot.
  const quiet = watching.catch(() => {});
  return async () => {
    ended.abort();
    await quiet;
  };
}
