import { BranchWalk, isFromNewerVersion, readContextRecords } from "@throughline/core/internal";
import type { SessionHead, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { isBoundary, isChosen, selectRecords, type RoleOf, type TailSelection } from "./select-records.ts";

/** States where a session's branch ends, and which of its records `readTail` returns. */
export interface TailQuery {
  /** States where the branch ends, the last sequence number, and where the stated window starts. */
  readonly head: Pick<SessionHead, "headId" | "lastSeq" | "windowSeq">;
  /** Sets which records are returned, and how many of the newest. */
  readonly selection: TailSelection;
  /** Returns the role by which `selection.role` chooses a record. */
  readonly roleOf: RoleOf;
}

/**
 * Reads the newest chosen records of a session from its end. Memory grows with the chosen records. It also grows with
 * the records that a compaction keeps, when the branch is followed that far. A branch with a missing parent, or with a
 * parent after its child, cannot be followed from its end. Such a session is read whole.
 */
export async function readTail(
  store: SessionStore,
  ref: SessionRef,
  query: TailQuery,
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const { selection, roleOf } = query;
  const { headId, lastSeq } = query.head;
  const { isAll, isAllBranches, afterSeq, tail: wanted } = selection;
  const fromSeq = firstSeqOf(query);
  const walk = new BranchWalk(headId);
  const newestFirst: StoredRecord[] = [];
  let isBegun = false;
  const range = { order: "descending", beforeSeq: lastSeq + 1, afterSeq: fromSeq - 1, signal } as const;
  for await (const { records } of store.read(ref, range))
    for (const stored of records) {
      const isShown = isAllBranches || walk.take(stored);
      isBegun ||= isShown;
      // A newer version may have given the record a meaning for the branch, and `selectRecords` then shows everything.
      if (!isAllBranches && (isShown || stored.side) && isFromNewerVersion(stored.record))
        return readWhole(store, ref, query, signal);
      if (!isShown) continue;
      if (stored.seq <= afterSeq) return newestFirst.reverse();
      if (!isAll && !isAllBranches && isBoundary(stored)) {
        const kept = await readContextRecords(
          store,
          ref,
          { headId: stored.id, lastSeq: stored.seq },
          { signal, fromSeq },
        );
        const rest = { ...selection, tail: wanted - newestFirst.length };
        return [...selectRecords(kept, stored.id, rest, roleOf), ...newestFirst.reverse()];
      }
      if (isChosen(stored, selection, roleOf)) newestFirst.push(stored);
      if (newestFirst.length === wanted || (!isAllBranches && walk.isAtRoot)) return newestFirst.reverse();
    }
  // A started branch that leaves the stated window is complete here. Any other branch has a gap, so the whole session
  // is read.
  const isWhole = isAllBranches || headId === null || (isBegun && fromSeq > 1);
  return isWhole ? newestFirst.reverse() : readWhole(store, ref, query, signal);
}

async function readWhole(
  store: SessionStore,
  ref: SessionRef,
  query: TailQuery,
  signal: AbortSignal,
): Promise<readonly StoredRecord[]> {
  const { headId, lastSeq } = query.head;
  const records: StoredRecord[] = [];
  const range = { afterSeq: firstSeqOf(query) - 1, beforeSeq: lastSeq + 1, signal };
  for await (const page of store.read(ref, range)) records.push(...page.records);
  return selectRecords(records, headId, query.selection, query.roleOf);
}

/** Records before a stated window cost a longer read, so they are read only for `isAll` and `isAllBranches`. */
function firstSeqOf({ head: { windowSeq }, selection: { isAll, isAllBranches } }: TailQuery): number {
  return isAll || isAllBranches ? 1 : (windowSeq ?? 1);
}
