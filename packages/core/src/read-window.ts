import { loadExisting } from "./open-session.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionState, SessionStore, StoredRecord } from "./session-store.ts";

export interface RecordWindow {
  readonly state: SessionState;
  /** In order of seq. */
  readonly records: readonly StoredRecord[];
}

/**
 * The records a context needs: from the boundary the last writer stated, or all of them. Memory grows with the window,
 * not with the session.
 */
export async function readWindow(
  store: SessionStore,
  ref: SessionRef,
  options: { readonly signal?: AbortSignal } = {},
): Promise<RecordWindow> {
  // A store that a network lies in front of brings both at once.
  if (store.readWindow !== undefined) return store.readWindow(ref, options);
  const state = await loadExisting(store, ref);
  const records: StoredRecord[] = [];
  const afterSeq = (state.head.windowSeq ?? 1) - 1;
  for await (const page of store.read(ref, { ...options, afterSeq })) records.push(...page.records);
  return { state, records };
}
