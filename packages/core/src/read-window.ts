import { assertKnownOptions, optionKinds } from "./option-checks.ts";
import { readContextRecords } from "./branch-walk.ts";
import { loadExisting } from "./open-session.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import type { StoredRecord } from "./stored-records.ts";
import { createWorkSlices } from "./work-slices.ts";

/** Holds the records that a context is built from, read from the end of a session. */
export interface RecordWindow {
  /** Holds the state of the session when the window was read. */
  readonly state: SessionState;
  /** Holds the records in order of seq. */
  readonly records: readonly StoredRecord[];
}

/**
 * Reads the records that a context needs. They start at the boundary that the last writer stated, else at the first
 * record that the newest compaction or reset on the branch keeps. Earlier records that set the model and the thinking
 * level are included. A session without any boundary is read whole. Memory grows with the window, not with the session.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND
 */
export async function readWindow(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<RecordWindow> {
  assertKnownOptions<{ readonly signal?: AbortSignal }>("readWindow", options, { signal: optionKinds.signal });
  // A store behind a network returns the state and the records in one request.
  if (store.readWindow !== undefined) return store.readWindow(ref, options);
  for (;;) {
    const state = await loadExisting(store, ref);
    const records = await recordsOf(store, ref, state, options);
    // A reset in between gives the key to another session, whose records do not belong to this state.
    const isEmpty = records.length === 0 && state.head.lastSeq === 0;
    const now = isEmpty ? state : await store.load(ref, options);
    if (now?.sessionId === state.sessionId) return { state, records };
  }
}

async function recordsOf(
  store: SessionStore,
  ref: SessionRef,
  { head }: SessionState,
  options: { readonly signal?: AbortSignal },
): Promise<readonly StoredRecord[]> {
  if (head.windowSeq === null) return readContextRecords(store, ref, head, { ...options, withSettings: true });
  const records: StoredRecord[] = [];
  const slices = createWorkSlices();
  for await (const page of store.read(ref, { ...options, afterSeq: head.windowSeq - 1 })) {
    records.push(...page.records);
    // A store that answers without waiting would block other work until every page is read.
    const pause = slices.next();
    if (pause !== undefined) await pause;
  }
  return records;
}
