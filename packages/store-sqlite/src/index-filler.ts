import { hasErrorCode, type ErrorCode, type ThroughlineError } from "@throughline/core";
import { areChildrenBehind, clearChildrenSlice, enterChildren } from "./child-index.ts";
import { deleteOldIndexSlice } from "./search-index.ts";
import type { SearchIndex } from "./search-index.ts";
import type { StoreHandle } from "./store-handle.ts";

/** Sets when the indexes behind the log are filled: after the turns, or only for a search. */
export type SearchFill = "background" | "on-demand";

/** A burst of writes is over after an interval of this length without a write. Then the indexes are filled. */
const quietMs = 150;
/** The indexes are filled after this time, even while a burst goes on. */
const longestWaitMs = 2000;

/** A batch is written after this time without a turn. */
const betweenTurnsMs = 30;
/** While turns come without a pause, a batch is written after this time. */
const betweenBatchesMs = 250;

/** The full-text index is merged in at most this many steps after each batch. */
const mostMerges = 16;

/** Counting takes as long as a batch, so progress is reported only after this many batches. */
const batchesBetweenCounts = 16;

/**
 * A search waits this long for the lock before it reads the records that are not indexed. For a while after such a
 * timeout, searches wait only shortly.
 */
const searchTimeoutMs = 1000;
const backOffMs = 10_000;
const shortTimeoutMs = 20;

/** A search continues without the index after these errors, because a store that cannot be written can be read. */
const unwritable: readonly ErrorCode[] = ["STORE_LOCKED", "STORE_FULL", "STORE_READ_ONLY", "STORE_IO"];

/** Fills the indexes of words and of parents behind the log, as soon as turns leave time for it. */
export class IndexFiller {
  readonly #handle: StoreHandle;
  /** Null under a codec without tokens, where only children are entered. */
  readonly #words: SearchIndex | null;
  readonly #fill: SearchFill;
  #timer: NodeJS.Timeout | null = null;
  /**
   * False when there was a write since the last tick. One timer for many writes costs each write less than a timer of
   * its own.
   */
  #isQuiet = false;
  #waitingSinceMs = 0;
  #lastWriteMs = 0;
  #isStopping = false;
  /** Counts the operations during which the index must not be filled. */
  #waitedFor = 0;
  #wake: () => void = () => undefined;
  #filling: Promise<void> | null = null;
  /** The time at which a search last could not write the store. */
  #unwritableMs = -Infinity;

  constructor(handle: StoreHandle, words: SearchIndex | null, fill: SearchFill) {
    this.#handle = handle;
    this.#words = words;
    this.#fill = fill;
  }

  poke(): void {
    const nowMs = this.#handle.context.clock.nowMs();
    this.#lastWriteMs = nowMs;
    if (this.#fill === "on-demand" || this.#filling !== null || this.#waitedFor > 0) return;
    this.#isQuiet = false;
    if (this.#timer !== null) return;
    this.#waitingSinceMs = nowMs;
    // The timer does not keep the process alive, because the next process can fill the indexes.
    this.#timer = setTimeout(() => this.#look(), quietMs).unref();
  }

  /** Ends the running work, because the handle is closing. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isStopping = true;
    this.#wake();
    await this.#filling;
  }

  /** Indexes the words of all records that exist now. */
  async catchUp(signal: AbortSignal | undefined, filled: () => void = () => undefined): Promise<void> {
    const newest = await this.#handle.read(({ statements }) => statements.newestRecord.get() ?? 0, signal);
    for (let toRecord: number | null = 0; toRecord !== null && toRecord < newest;) {
      toRecord = await this.#fillBatch(signal);
      filled();
    }
  }

  /** Indexes words and children, and yields how many records are left, so that a waiting caller can report progress. */
  async *fill(signal: AbortSignal | undefined): AsyncGenerator<number> {
    const words = this.#words;
    const left = (): Promise<number> => this.#handle.read((connection) => words?.lag(connection) ?? 0, signal);
    const newest = await this.#handle.read(({ statements }) => statements.newestRecord.get() ?? 0, signal);
    yield await left();
    for (let batches = 1, toRecord: number | null = 0; toRecord !== null && toRecord < newest; batches++) {
      toRecord = await this.#fillBatch(signal);
      if (batches % batchesBetweenCounts === 0) yield await left();
    }
    yield await left();
  }

  /**
   * Indexes words for a search, which is a read. If the store cannot be written, because the disk is full or a writer
   * is stuck, it returns the reason. The search then reads the records that are not indexed.
   */
  async catchUpIfWritable(signal: AbortSignal | undefined): Promise<ThroughlineError | null> {
    const { clock, lockTimeoutMs } = this.#handle.context;
    const isBackingOff = clock.nowMs() - this.#unwritableMs < backOffMs;
    const timeout = new AbortController();
    const timer = setTimeout(
      () => timeout.abort(),
      Math.min(lockTimeoutMs, isBackingOff ? shortTimeoutMs : searchTimeoutMs),
    );
    try {
      const either = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]);
      await this.catchUp(either, () => timer.refresh());
      this.#unwritableMs = -Infinity;
      return null;
    } catch (error) {
      const isOver = timeout.signal.aborted && signal?.aborted !== true && hasErrorCode(error, "ABORTED");
      if (!isOver && !hasErrorCode(error, ...unwritable)) throw error;
      this.#unwritableMs = clock.nowMs();
      return error;
    } finally {
      clearTimeout(timer);
    }
  }

  async rebuild({ signal }: { readonly signal?: AbortSignal | undefined }): Promise<void> {
    const step = { durability: "process", signal } as const;
    await this.waitingFor(async () => {
      const words = this.#words;
      const deleteOld = async (): Promise<void> => {
        while (await this.#handle.write(({ connection }) => deleteOldIndexSlice(connection), step));
      };
      // Another process may be rebuilding the index too, or may have ended before it deleted the old one.
      if (words !== null)
        while (!(await this.#handle.write(({ connection }) => words.beginAnew(connection), step))) await deleteOld();
      await deleteOld();
      while (await this.#handle.write(({ connection }) => clearChildrenSlice(connection.statements), step));
      await this.catchUp(signal);
      // The batches of words are the smaller ones, so after the last of them only children can be left.
      while ((await this.#fillBatch(signal)) === Infinity);
    });
  }

  /** Keeps the background from filling the indexes while the work empties them. Searches still fill them. */
  async waitingFor<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#waitedFor += 1;
    try {
      // The pause between batches does not keep the process alive. Without waking it, the process could end before the
      // work begins.
      this.#wake();
      await this.#filling;
      return await work();
    } finally {
      this.#waitedFor -= 1;
      // Records that were appended meanwhile are filled in as usual.
      this.poke();
    }
  }

  #look(): void {
    const isOverdue = this.#handle.context.clock.nowMs() - this.#waitingSinceMs >= longestWaitMs;
    if (this.#isQuiet || isOverdue) this.#fillBehind();
    else {
      this.#isQuiet = true;
      this.#timer?.refresh();
    }
  }

  #fillBehind(): void {
    this.#timer = null;
    if (this.#waitedFor > 0) return;
    // An error here occurs again in the next search, which reports it.
    this.#filling = this.#fillWhenQuiet().then(
      () => this.#filled(),
      () => this.#filled(),
    );
  }

  #filled(): void {
    this.#filling = null;
  }

  /**
   * Fills the indexes batch by batch. Each batch waits for a short time without turns, or for the longest pause between
   * batches.
   */
  async #fillWhenQuiet(): Promise<void> {
    const { clock } = this.#handle.context;
    for (;;) {
      const startedMs = clock.nowMs();
      const isBusy = (): boolean =>
        clock.nowMs() - this.#lastWriteMs < betweenTurnsMs && clock.nowMs() - startedMs < betweenBatchesMs;
      while (isBusy() && !this.#isLeaving) await this.#rest();
      if (this.#isLeaving || !(await this.#isBehind())) return;
      await this.#fillBatch(undefined);
    }
  }

  get #isLeaving(): boolean {
    return this.#isStopping || this.#waitedFor > 0;
  }

  #isBehind(): Promise<boolean> {
    return this.#handle.read(
      (connection) => areChildrenBehind(connection.statements) || this.#words?.isBehind(connection) === true,
    );
  }

  /** The pause does not keep the process alive, and closing does not wait for it. */
  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, betweenTurnsMs).unref();
    });
  }

  /**
   * Enters the next records, which takes a few milliseconds. Returns the number of the last record with indexed words,
   * Infinity when only children were entered, and null when nothing was left.
   */
  async #fillBatch(signal: AbortSignal | undefined): Promise<number | null> {
    const words = this.#words;
    const batch = words === null ? null : await this.#handle.read((connection) => words.nextBatch(connection), signal);
    const areBehind = (): Promise<boolean> =>
      this.#handle.read(({ statements }) => areChildrenBehind(statements), signal);
    if (batch === null && !(await areBehind())) return null;
    const isWritten = await this.#handle.write(
      ({ connection }) => {
        enterChildren(connection.statements);
        return batch === null || words === null || words.writeBatch(connection, batch);
      },
      { durability: "process", signal },
    );
    if (words !== null) await this.#merge(words, signal);
    if (batch === null) return Infinity;
    return isWritten ? batch.toRecord : 0;
  }

  /** Merges the full-text index, so that searching it stays fast. The steps are as short as those of filling it. */
  async #merge(words: SearchIndex, signal: AbortSignal | undefined): Promise<void> {
    const step = { durability: "process", signal } as const;
    for (let steps = 0; steps < mostMerges; steps++) {
      if (!(await this.#handle.write(({ connection }) => words.merge(connection), step))) return;
    }
  }
}
