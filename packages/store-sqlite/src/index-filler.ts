import { hasErrorCode, type ErrorCode, type ThroughlineError } from "@throughline/core";
import { areChildrenBehind, clearChildrenSlice, enterChildren } from "./child-index.ts";
import { deleteOldIndexSlice } from "./search-index.ts";
import type { SearchIndex } from "./search-index.ts";
import type { StoreHandle } from "./store-handle.ts";

/** When the indexes behind the log are filled: behind the turns, or only when somebody searches. */
export type SearchFill = "background" | "on-demand";

/** Looked at so often: without a write between two looks a burst is over, and the indexes are filled. */
const quietMs = 150;
/** A burst that does not end is not waited for longer. */
const longestWaitMs = 2000;

/** Without a turn for so long it is quiet enough for one batch. */
const betweenTurnsMs = 30;
/** While turns come without a pause there is one batch in so long. */
const betweenBatchesMs = 250;

/** The most steps in which the full-text index is merged after each batch. */
const mostMerges = 16;

/** Progress of a fill is reported after this many batches. */
const batchesBetweenCounts = 16;

/** A search waits so long for the lock before it reads what is not indexed, and for a while after that it does not wait again. */
const searchPatienceMs = 1000;
const impatientForMs = 10_000;
const shortPatienceMs = 20;

/** Why a store that can be read may not be written. */
const unwritable: readonly ErrorCode[] = ["STORE_LOCKED", "STORE_FULL", "STORE_READ_ONLY", "STORE_IO"];

/** Keeps what is found by words and by parents behind the log by as little as turns allow. */
export class IndexFiller {
  readonly #handle: StoreHandle;
  /** Null under a codec: there only children are entered. */
  readonly #words: SearchIndex | null;
  readonly #fill: SearchFill;
  #timer: NodeJS.Timeout | null = null;
  /** False when there was a write since the last look: a timer of its own for every write would be felt in each. */
  #isQuiet = false;
  #waitingSinceMs = 0;
  #lastWriteMs = 0;
  #isStopping = false;
  /** How many operations need that the index is not filled meanwhile. */
  #waitedFor = 0;
  #wake: () => void = () => undefined;
  #filling: Promise<void> | null = null;
  /** When a search last found the store not to be written. */
  #unwritableMs = -Infinity;

  constructor(handle: StoreHandle, words: SearchIndex | null, fill: SearchFill) {
    this.#handle = handle;
    this.#words = words;
    this.#fill = fill;
  }

  /** Called after every commit of a turn. */
  poke(): void {
    const nowMs = this.#handle.context.clock.nowMs();
    this.#lastWriteMs = nowMs;
    if (this.#fill === "on-demand" || this.#filling !== null || this.#waitedFor > 0) return;
    this.#isQuiet = false;
    if (this.#timer !== null) return;
    this.#waitingSinceMs = nowMs;
    // A process that has nothing else to do may end: the next one goes on.
    this.#timer = setTimeout(() => this.#look(), quietMs).unref();
  }

  /** Ends what is under way, for the handle is closing. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isStopping = true;
    this.#wake();
    await this.#filling;
  }

  /** Indexes the words of everything that is there now. */
  async catchUp(signal: AbortSignal | undefined, filled: () => void = () => undefined): Promise<void> {
    const newest = await this.#handle.read(({ statements }) => statements.newestRecord.get() ?? 0, signal);
    for (let toRecord: number | null = 0; toRecord !== null && toRecord < newest;) {
      toRecord = await this.#fillBatch(signal);
      filled();
    }
  }

  /**
   * The same with children, in the open: yields how many records are left, so that a waiting caller can report
   * progress.
   */
  async *fill(signal: AbortSignal | undefined): AsyncGenerator<number> {
    const words = this.#words;
    const left = (): Promise<number> => this.#handle.read((connection) => words?.lag(connection) ?? 0, signal);
    const newest = await this.#handle.read(({ statements }) => statements.newestRecord.get() ?? 0, signal);
    yield await left();
    for (let batches = 1, toRecord: number | null = 0; toRecord !== null && toRecord < newest; batches++) {
      toRecord = await this.#fillBatch(signal);
      // Counting what is left takes as long as a batch.
      if (batches % batchesBetweenCounts === 0) yield await left();
    }
    yield await left();
  }

  /**
   * The same for a search, which is a read. If the store cannot be written, because the disk is full or a writer is
   * stuck, it returns the reason. The search then reads the records that are not indexed.
   */
  async catchUpIfWritable(signal: AbortSignal | undefined): Promise<ThroughlineError | null> {
    const { clock, lockTimeoutMs } = this.#handle.context;
    const isImpatient = clock.nowMs() - this.#unwritableMs < impatientForMs;
    const patience = new AbortController();
    const timer = setTimeout(
      () => patience.abort(),
      Math.min(lockTimeoutMs, isImpatient ? shortPatienceMs : searchPatienceMs),
    );
    try {
      const either = signal === undefined ? patience.signal : AbortSignal.any([signal, patience.signal]);
      await this.catchUp(either, () => timer.refresh());
      this.#unwritableMs = -Infinity;
      return null;
    } catch (error) {
      const isOver = patience.signal.aborted && signal?.aborted !== true && hasErrorCode(error, "ABORTED");
      if (!isOver && !hasErrorCode(error, ...unwritable)) throw error;
      this.#unwritableMs = clock.nowMs();
      return error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Rebuilds both indexes from the records, in steps as short as those of filling them. */
  async rebuild({ signal }: { readonly signal?: AbortSignal }): Promise<void> {
    const step = { durability: "process", signal } as const;
    await this.waitingFor(async () => {
      const words = this.#words;
      const deleteOld = async (): Promise<void> => {
        while (await this.#handle.write(({ connection }) => deleteOldIndexSlice(connection), step));
      };
      // Somebody else may be about it too, or have been and not have come to the end.
      if (words !== null)
        while (!(await this.#handle.write(({ connection }) => words.beginAnew(connection), step))) await deleteOld();
      await deleteOld();
      while (await this.#handle.write(({ connection }) => clearChildrenSlice(connection.statements), step));
      await this.catchUp(signal);
      // Words come in smaller batches: with the last of them there is nothing left but children, if anything.
      while ((await this.#fillBatch(signal)) === Infinity);
    });
  }

  /** Fills nothing in while the work lasts: what is emptied by it would be filled behind it. Whoever searches still does. */
  async waitingFor<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#waitedFor += 1;
    try {
      // Its rest keeps no process alive: waited out, it would let one end before the work has begun.
      this.#wake();
      await this.#filling;
      return await work();
    } finally {
      this.#waitedFor -= 1;
      // What was appended meanwhile is left to be filled in as ever.
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
    // What fails here fails again for whoever searches, and is told to him.
    this.#filling = this.#fillWhenQuiet().then(
      () => this.#filled(),
      () => this.#filled(),
    );
  }

  #filled(): void {
    this.#filling = null;
  }

  /** Fills in what there is, batch by batch, each when no turn was written for a moment, or has been for long. */
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
      (connection) =>
        areChildrenBehind(connection.statements) || (this.#words !== null && this.#words.lag(connection) > 0),
    );
  }

  /** A process that has nothing else to do may end meanwhile; closing does not wait for it. */
  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, betweenTurnsMs).unref();
    });
  }

  /**
   * A few milliseconds of what is not entered yet. Gives the number up to which words stand: infinite when only children
   * were to be entered, null when there was nothing at all.
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

  /** Keeps the full-text index in few parts, so that searching it stays fast, in steps as short as those of filling it. */
  async #merge(words: SearchIndex, signal: AbortSignal | undefined): Promise<void> {
    const step = { durability: "process", signal } as const;
    for (let steps = 0; steps < mostMerges; steps++) {
      if (!(await this.#handle.write(({ connection }) => words.merge(connection), step))) return;
    }
  }
}
