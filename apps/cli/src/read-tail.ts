import type { SessionHead, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { selectRecords, selectTail, type TailSelection, type RoleOf } from "./select-records.ts";

/** What is read before it is looked at for the first time; twice as much the next time. */
const firstLookRecords = 256;

/** Where a session's branch ends, and what of it is wanted. */
export interface TailQuery {
  readonly head: Pick<SessionHead, "headId" | "lastSeq">;
  readonly selection: TailSelection;
  readonly roleOf: RoleOf;
}

/** The last of a session's records that are chosen, read from its end: no more than it takes to say which those are. */
export async function readTail(
  store: SessionStore,
  ref: SessionRef,
  { head: { headId, lastSeq }, selection, roleOf }: TailQuery,
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const newestFirst: StoredRecord[] = [];
  let nextLook = firstLookRecords;
  for await (const page of store.read(ref, { order: "descending", beforeSeq: lastSeq + 1, signal })) {
    newestFirst.push(...page.records);
    if (newestFirst.length < nextLook) continue;
    nextLook = 2 * newestFirst.length;
    const chosen = selectTail(newestFirst.toReversed(), headId, selection, roleOf);
    if (chosen !== null) return chosen;
  }
  return selectRecords(newestFirst.toReversed(), headId, selection, roleOf);
}
