import { findRecordProblem } from "./find-record-problem.ts";
import type { SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import type { SessionHead } from "./session-state.ts";
import type { RecordHead, StoredRecord } from "./stored-records.ts";

/**
 * Says which records of a log lie on the branch of a head. Takes them newest first and keeps one id, so that a branch can
 * be followed page by page. A branch is followed only where each parent comes before its child: `isAtRoot` stays false
 * where one does not, and then the log has to be read whole.
 */
export class BranchWalk {
  #wantedId: string | null;

  constructor(headId: string | null) {
    this.#wantedId = headId;
  }

  /** True once the record without a parent was taken: no other record is on the branch. */
  get isAtRoot(): boolean {
    return this.#wantedId === null;
  }

  /** Whether the next older record is on the branch. */
  take({ id, parentId }: Pick<RecordHead, "id" | "parentId">): boolean {
    if (this.#wantedId === null || id !== this.#wantedId) return false;
    this.#wantedId = parentId;
    return true;
  }
}

/** Finds the first record that the context of a head needs, going back from the head. */
class WindowSearch {
  readonly #walk: BranchWalk;
  /** What the newest boundary keeps from; null until one is found. */
  #keptId: string | null = null;
  #isLost = false;

  constructor(headId: string | null) {
    this.#walk = new BranchWalk(headId);
  }

  /** Whether the window begins with the next older record. */
  take(stored: StoredRecord): boolean {
    const isOnBranch = this.#walk.take(stored);
    // What a boundary names beside the branch counts by its place, which only the whole log tells.
    if (!isOnBranch) this.#isLost ||= stored.side && stored.id === this.#keptId;
    if (!isOnBranch || this.#isLost) return false;
    if (this.#keptId !== null) return stored.id === this.#keptId;
    if (stored.side || (stored.type !== "compaction" && stored.type !== "reset")) return false;
    if (findRecordProblem(stored.record) !== null) return false;
    const firstKeptId = stored.record["firstKeptEntryId"];
    if (firstKeptId === stored.id || (stored.type === "reset" && typeof firstKeptId !== "string")) return true;
    this.#keptId = typeof firstKeptId === "string" ? firstKeptId : null;
    this.#isLost = this.#keptId === null;
    return false;
  }
}

/**
 * The records that a context at a head needs, in order of seq. They start with what the newest compaction or reset of
 * its branch keeps; without one, with the first record. Reads from the end, so that memory and time grow with what is
 * needed.
 *
 * @param options `fromSeq`: nothing before this seq is read. @default 1
 */
export async function readContextRecords(
  store: SessionStore,
  ref: SessionRef,
  { headId, lastSeq }: Pick<SessionHead, "headId" | "lastSeq">,
  options: { readonly signal?: AbortSignal; readonly fromSeq?: number } = {},
): Promise<readonly StoredRecord[]> {
  const { fromSeq = 1, ...given } = options;
  const search = new WindowSearch(headId);
  const newestFirst: StoredRecord[] = [];
  const range = { ...given, order: "descending", beforeSeq: lastSeq + 1, afterSeq: fromSeq - 1 } as const;
  for await (const { records } of store.read(ref, range))
    for (const stored of records) {
      newestFirst.push(stored);
      if (search.take(stored)) return newestFirst.reverse();
    }
  return newestFirst.reverse();
}
