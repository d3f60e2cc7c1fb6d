import { findRecordProblem } from "./find-record-problem.ts";
import { createWorkSlices } from "./work-slices.ts";
import type { SessionRef } from "./session-ref.ts";
import type { ReadOptions, SessionStore } from "./session-store.ts";
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

/** Finds the settings that the messages of a context may lack: the last model that was set or heard, and the thinking level. */
export class SettingsSearch {
  #hasModel = false;
  #hasLevel = false;

  /** Whether nothing before the records that were taken can set anything. */
  get isDone(): boolean {
    return this.#hasModel && this.#hasLevel;
  }

  /** Takes a record of the branch, the newest first. True when it sets what no later one did. */
  take({ type, record }: Pick<StoredRecord, "type" | "record">): boolean {
    if (type === "thinking_level_change" && !this.#hasLevel)
      return (this.#hasLevel = findRecordProblem(record) === null);
    const message = type === "message" ? (record["message"] as { readonly role?: unknown } | null) : null;
    if (this.#hasModel || (type !== "model_change" && message?.role !== "assistant")) return false;
    return (this.#hasModel = findRecordProblem(record) === null);
  }
}

/** Finds the first record that the context of a head needs, going back from the head. */
class WindowSearch {
  readonly settings: SettingsSearch = new SettingsSearch();
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
    if (isOnBranch) this.settings.take(stored);
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
 * @param options `fromSeq`: nothing before this seq is read. @default 1. `withSettings`: they start earlier where the model or the
 * thinking level was set before. @default false
 */
export async function readContextRecords(
  store: SessionStore,
  ref: SessionRef,
  { headId, lastSeq }: Pick<SessionHead, "headId" | "lastSeq">,
  options: { readonly signal?: AbortSignal; readonly fromSeq?: number; readonly withSettings?: boolean } = {},
): Promise<readonly StoredRecord[]> {
  const { fromSeq = 1, withSettings = false, ...given } = options;
  const search = new WindowSearch(headId);
  const newestFirst: StoredRecord[] = [];
  const range = { ...given, order: "descending", beforeSeq: lastSeq + 1, afterSeq: fromSeq - 1 } as const;
  const slices = createWorkSlices();
  for await (const { records } of store.read(ref, range)) {
    // A store that answers at once would let nobody in until all of it is read.
    const pause = slices.next();
    if (pause !== undefined) await pause;
    for (const stored of records) {
      newestFirst.push(stored);
      if (!search.take(stored)) continue;
      if (!withSettings) return newestFirst.reverse();
      const before = { ...range, beforeSeq: stored.seq };
      const from = await settingsSeq(store, ref, stored.parentId, search.settings, before);
      if (from !== null) newestFirst.push(...(await readAll(store, ref, { ...before, afterSeq: from - 1 })));
      return newestFirst.reverse();
    }
  }
  return newestFirst.reverse();
}

/**
 * The seq from which the branch sets its model and thinking level, when nothing in the window does. Programs do not repeat them
 * behind a compaction. Null where they were never set. Only one page at a time is held.
 */
async function settingsSeq(
  store: SessionStore,
  ref: SessionRef,
  headId: string | null,
  settings: SettingsSearch,
  range: ReadOptions,
): Promise<number | null> {
  const walk = new BranchWalk(headId);
  let from: number | null = null;
  if (settings.isDone || walk.isAtRoot) return null;
  for await (const { records } of store.read(ref, range))
    for (const stored of records) {
      if (!walk.take(stored)) continue;
      if (settings.take(stored)) from = stored.seq;
      if (settings.isDone || walk.isAtRoot) return from;
    }
  return from;
}

async function readAll(store: SessionStore, ref: SessionRef, options: ReadOptions): Promise<readonly StoredRecord[]> {
  const pages = await Array.fromAsync(store.read(ref, options));
  return pages.flatMap(({ records }) => records);
}
