import { readContextRecords } from "./branch-walk.ts";
import { loadExisting } from "./open-session.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionState } from "./session-state.ts";
import type { StoredRecord } from "./stored-records.ts";

export interface RecordWindow {
  readonly state: SessionState;
  /** In order of seq. */
  readonly records: readonly StoredRecord[];
}

/**
 * The records a context needs: from the boundary the last writer stated, or, where none did, from what the newest
 * compaction or reset on the branch keeps. All of them where the session has neither. Memory grows with the window, not
 * with the session.
 */
export async function readWindow(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal } = {},
): Promise<RecordWindow> {
  // A store that a network lies in front of brings both at once.
  if (store.readWindow !== undefined) return store.readWindow(ref, options);
  const state = await loadExisting(store, ref);
  const { windowSeq } = state.head;
  if (windowSeq === null) return { state, records: await readContextRecords(store, ref, state.head, options) };
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { ...options, afterSeq: windowSeq - 1 })) records.push(...page.records);
  return { state, records };
}
