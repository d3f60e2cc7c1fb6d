import { BranchWalk, isFromNewerVersion, readContextRecords } from "@throughline/core/internal";
import type { SessionHead, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { isBoundary, isChosen, selectRecords, type RoleOf, type TailSelection } from "./select-records.ts";

/** Where a session's branch ends, and what of it is wanted. */
export interface TailQuery {
  /** Where the branch ends, the last sequence number, and where the stated window starts. */
  readonly head: Pick<SessionHead, "headId" | "lastSeq" | "windowSeq">;
  /** Which records are wanted, and how many of the newest. */
  readonly selection: TailSelection;
  /** Gives the role that a record is compared by. */
  readonly roleOf: RoleOf;
}

/**
 * The last of a session's records that are chosen, read from its end. Memory grows with what is chosen, and with what a
 * compaction keeps when the branch is followed that far. A branch that cannot be followed from its end, because a parent is
 * missing or comes after its child, is read whole.
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
      // What it means for the branch is not known: `selectRecords` shows everything then.
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
  // The branch goes on before the window, or nobody knows where.
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

/** What lies before a window that somebody stated is read only when it is asked for. */
function firstSeqOf({ head: { windowSeq }, selection: { isAll, isAllBranches } }: TailQuery): number {
  return isAll || isAllBranches ? 1 : (windowSeq ?? 1);
}
