import { findRecordProblem } from "./find-record-problem.ts";
import { createWorkSlices } from "./work-slices.ts";
import type { SessionRef } from "./session-ref.ts";
import type { ReadOptions, SessionStore } from "./session-store.ts";
import type { SessionHead } from "./session-state.ts";
import type { RecordHead, StoredRecord } from "./stored-records.ts";

/**
 * Decides which records of a log lie on the branch of a head. Takes records newest first and keeps one id, so that a
 * branch can be followed page by page. A branch can be followed only when each parent comes before its child. Otherwise
 * `isAtRoot` stays false, and the log must be read whole.
 */
export class BranchWalk {
  #wantedId: string | null;

  constructor(headId: string | null) {
    this.#wantedId = headId;
  }

  /** True after the record without a parent was taken, because no older record is on the branch. */
  get isAtRoot(): boolean {
    return this.#wantedId === null;
  }

  /** Returns whether the record is on the branch. The caller passes the next older record each time. */
  take({ id, parentId }: Pick<RecordHead, "id" | "parentId">): boolean {
    if (this.#wantedId === null || id !== this.#wantedId) return false;
    this.#wantedId = parentId;
    return true;
  }
}

/**
 * Finds the settings that the messages of a context may lack: the last model that was set or answered, and the thinking
 * level.
 */
export class SettingsSearch {
  #hasModel = false;
  #hasLevel = false;

  /** True when no older record can set anything. */
  get isDone(): boolean {
    return this.#hasModel && this.#hasLevel;
  }

  /** Takes a record of the branch, newest first. Returns true when the record sets a value that no later record set. */
  take({ type, record }: Pick<StoredRecord, "type" | "record">): boolean {
    if (type === "thinking_level_change" && !this.#hasLevel)
      return (this.#hasLevel = findRecordProblem(record) === null);
    const message = type === "message" ? (record["message"] as { readonly role?: unknown } | null) : null;
    if (this.#hasModel || (type !== "model_change" && message?.role !== "assistant")) return false;
    return (this.#hasModel = findRecordProblem(record) === null);
  }
}

/** Finds the first record that the context of a head needs, searching back from the head. */
class WindowSearch {
  readonly settings: SettingsSearch = new SettingsSearch();
  readonly #walk: BranchWalk;
  /** Holds the id of the first record that the newest boundary keeps; null until a boundary is found. */
  #keptId: string | null = null;
  #isLost = false;

  constructor(headId: string | null) {
    this.#walk = new BranchWalk(headId);
  }

  /** Takes the next older record, and returns true when the window starts with it. */
  take(stored: StoredRecord): boolean {
    const isOnBranch = this.#walk.take(stored);
    // A boundary may keep a side record. Only the whole log shows the position of that record, so the search gives up.
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
 * Reads the records that a context at a head needs, in order of seq. They start with the first record that the newest
 * compaction or reset of its branch keeps, else with the first record of the log. Reading starts at the end, so that
 * memory and time grow only with the needed records.
 *
 * @param options `fromSeq`: nothing before this seq is read. @default 1. `withSettings`: the records start earlier when
 * the model or the thinking level was set before the window. @default false
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
    // A store that answers without waiting would block other work until every page is read.
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
 * Returns the seq from which the branch sets its model and thinking level, when no record in the window sets them.
 * Programs do not repeat these settings after a compaction. Returns null when they were never set. Only one page is
 * held at a time.
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
