import { abortedBefore, refused } from "@throughline/core/internal";
import { ThroughlineError, type Durability, type SessionEvent } from "@throughline/core";
import type { Connection } from "./connection.ts";
import { isBusy, nativeCode, storeError } from "./sqlite-errors.ts";
import type { Session } from "./rows.ts";
import { lockHolder } from "./store-file.ts";
import type { StoreContext, WriteContext } from "./store-context.ts";
import { UnflushedLog } from "./unflushed-log.ts";

/** Byte 120 of the memory that connections share is SQLite's write lock. */
const writeLockByte = 120;

export interface WriteOptions {
  readonly durability: Durability;
  readonly signal?: AbortSignal | undefined;
  /**
   * Marks an append. An append refuses before it changes anything, so it needs no savepoint. It also keeps the
   * connection's known sessions current, which any other write makes stale.
   */
  readonly isAppend?: boolean;
}

interface Job {
  readonly run: (context: WriteContext) => unknown;
  readonly options: WriteOptions;
  readonly waitsSinceMs: number;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
}

/** One commit takes at most this many jobs and this much time, because nothing else runs in this process meanwhile. */
const maxJobs = 64;
const maxGroupMs = 5;

/** Locks are held for less than a commit takes, so a few quick attempts are worth making before sleeping. */
const spinAttempts = 6;
const napMs = 0.05;
const napCell = new Int32Array(new SharedArrayBuffer(4));

export interface Commit {
  readonly events: readonly SessionEvent[];
  /** Lists the sessions that may have more records. */
  readonly grown: ReadonlySet<Session>;
}

/**
 * Runs the writes of one handle. Jobs that arrive in one turn of the event loop share one IMMEDIATE transaction. A job
 * that may be refused after its first change gets a savepoint, so that it undoes no other. A transaction is one
 * synchronous section: no read of this handle can fall into it, and no lock is held during a wait.
 */
export class WriteQueue {
  readonly #context: StoreContext;
  readonly #connection: Connection;
  readonly #committed: (commit: Commit) => void;
  readonly #writeContext: WriteContext;
  #announced: SessionEvent[] = [];
  /** Lists the sessions to which the jobs have appended, or tried to. */
  #grown: Set<Session> = new Set();
  #jobs: Job[] = [];
  /** Counts how many of the next jobs get a transaction of their own. */
  #alone = 0;
  #hasWritten = false;
  #work: Promise<void> | null = null;
  readonly #unflushed: UnflushedLog;

  constructor(context: StoreContext, connection: Connection, committed: (commit: Commit) => void) {
    this.#context = context;
    this.#connection = connection;
    this.#committed = committed;
    this.#unflushed = new UnflushedLog(context.path, connection);
    this.#writeContext = {
      ...context,
      connection,
      announce: (...events) => this.#announced.push(...events),
      grew: (session) => this.#grown.add(session),
    };
  }

  /** Returns true after a failed flush, until its content is on the disk. */
  get isUnflushed(): boolean {
    return this.#unflushed.isWaiting;
  }

  get hasWritten(): boolean {
    return this.#hasWritten;
  }

  /** Notes a failed flush outside a commit. */
  flushFailed(): void {
    this.#unflushed.failed();
  }

  /** Runs the job in a transaction, and resolves with its result after the commit. */
  submit<Result>(run: (context: WriteContext) => Result, options: WriteOptions): Promise<Result> {
    this.#hasWritten = true;
    return new Promise<Result>((resolve, reject) => {
      this.#jobs.push({ run, options, waitsSinceMs: this.#context.clock.nowMs(), resolve, reject });
      this.#work ??= this.#run();
    });
  }

  async drain(): Promise<void> {
    while (this.#work !== null) await this.#work;
  }

  async #run(): Promise<void> {
    await nextTick();
    try {
      while (this.#jobs.length > 0) {
        if (!this.#tryGroup()) await this.#insist();
        if (this.#jobs.length > 0) await nextTick();
      }
    } catch (error) {
      for (const job of this.#jobs.splice(0)) job.reject(storeError(error, this.#context.path, "unknown"));
    }
    this.#alone = 0;
    this.#work = null;
  }

  /** Commits one group that was refused the lock, and waits for the lock. */
  async #insist(): Promise<void> {
    const { clock, random } = this.#context;
    let askedMs = clock.nowMs();
    for (let attempt = 1; ; attempt++) {
      if (attempt % spinAttempts !== 0) Atomics.wait(napCell, 0, 0, napMs);
      else {
        await clock.sleep(1 + (random.uint32() % 8));
        // Without this line, a clock that is set back would extend the timeout.
        askedMs = Math.min(askedMs, clock.nowMs());
        this.#dropOverdue(askedMs);
      }
      if (this.#tryGroup()) return;
    }
  }

  /** Runs one commit. Returns false when another connection holds the lock. */
  #tryGroup(): boolean {
    this.#dropAborted();
    const { statements, known, setDiskSync, assertInPlace } = this.#connection;
    const group = this.#jobs.slice(0, this.#alone > 0 ? 1 : maxJobs);
    if (group.length === 0) return true;
    const hasFailed = this.#unflushed.isWaiting;
    try {
      assertInPlace();
      // Nothing is acknowledged before the part of the log in front of it is on the disk.
      if (hasFailed && !this.#unflushed.write()) return false;
      setDiskSync(group.some(({ options }) => options.durability === "disk"));
      statements.begin.run();
      known.check(statements.dataVersion.get() ?? 0);
    } catch (error) {
      if (this.#connection.database.inTransaction) statements.rollback.run();
      if (isBusy(error)) return false;
      for (const job of this.#jobs.splice(0, group.length)) job.reject(storeError(error, this.#context.path));
      return true;
    }
    this.#commitGroup(group, hasFailed);
    return true;
  }

  #commitGroup(group: readonly Job[], hasFailed: boolean): void {
    const startedMs = this.#context.clock.nowMs();
    /** Reports the outcome of each job that has run, once the transaction is committed. */
    const settle: (() => void)[] = [];
    this.#announced = [];
    this.#grown = new Set();
    for (const job of group) {
      if (settle.length > 0 && this.#context.clock.nowMs() - startedMs >= maxGroupMs) break;
      try {
        settle.push(this.#runJob(job, group.length > 1));
      } catch (error) {
        // The transaction is lost with everything the group has done. Each job runs again alone, so that only the job
        // that meets a damaged page fails.
        this.#alone = group.length > 1 ? group.length : Math.max(this.#alone - 1, 0);
        if (group.length === 1) this.#jobs.shift()?.reject(storeError(error, this.#context.path));
        return;
      }
    }
    const done = this.#jobs.splice(0, settle.length);
    this.#alone = Math.max(this.#alone - done.length, 0);
    const failure = this.#commit(hasFailed);
    if (failure === null) for (const each of settle) each();
    else for (const job of done) job.reject(failure);
    if (failure === null) this.#committed({ events: this.#announced, grown: this.#grown });
  }

  /**
   * Runs one job and returns the function that reports its outcome. A refusal undoes the job alone. Throws when the
   * whole transaction is lost.
   */
  #runJob(job: Job, isOneOfMany: boolean): () => void {
    const { database, statements, known } = this.#connection;
    const { length: announcedBefore } = this.#announced;
    const hasSavepoint = isOneOfMany && job.options.isAppend !== true;
    if (hasSavepoint) statements.savepoint.run();
    try {
      const result = job.run(this.#writeContext);
      if (job.options.isAppend !== true) known.forget();
      if (hasSavepoint) statements.release.run();
      return () => job.resolve(result as never);
    } catch (error) {
      this.#announced.length = announcedBefore;
      known.forget();
      if (!database.inTransaction) throw error;
      if (hasSavepoint) {
        statements.rollbackToSavepoint.run();
        statements.release.run();
      } else if (!isOneOfMany || !ThroughlineError.isInstance(error)) statements.rollback.run();
      if (isOneOfMany && !database.inTransaction) throw error;
      return () => job.reject(storeError(error, this.#context.path));
    }
  }

  /** Returns null, or the reason why the group is not known to be committed. */
  #commit(hasFailed: boolean): ThroughlineError | null {
    const { database, statements, known } = this.#connection;
    // The refusal of a single job has ended the transaction.
    if (!database.inTransaction) return null;
    try {
      statements.commit.run();
      return null;
    } catch (error) {
      known.forget();
      // A full disk or a lock stops the commit before its last page. After any other failure the log may hold the whole
      // commit, also from an earlier commit that failed.
      const isStopped = isBusy(error) || nativeCode(error) === "SQLITE_FULL";
      const failure = storeError(error, this.#context.path, isStopped && !hasFailed ? "not-applied" : "unknown");
      if (!isStopped) this.#unflushed.failed();
      if (database.inTransaction) statements.rollback.run();
      return failure;
    }
  }

  #dropAborted(): void {
    if (!this.#jobs.some(({ options }) => options.signal?.aborted === true)) return;
    this.#jobs = this.#jobs.filter((job) => {
      const { signal } = job.options;
      if (signal?.aborted !== true) return true;
      job.reject(abortedBefore("the write began", signal));
      return false;
    });
  }

  /** Rejects jobs that have waited too long for the lock. Time behind other jobs of this handle does not count. */
  #dropOverdue(askedMs: number): void {
    const { clock, lockTimeoutMs, path } = this.#context;
    const nowMs = clock.nowMs();
    if (nowMs - askedMs < lockTimeoutMs) return;
    const holderPid = lockHolder(`${path}-shm`, writeLockByte);
    const named = holderPid === null ? "another connection" : `process ${holderPid}`;
    this.#jobs = this.#jobs.filter((job) => {
      const waitedMs = nowMs - (job.waitsSinceMs > nowMs ? askedMs : Math.max(job.waitsSinceMs, askedMs));
      if (waitedMs < lockTimeoutMs) return true;
      job.reject(
        refused("STORE_LOCKED", `The write lock of ${path} was held by ${named} for ${waitedMs} ms.`, {
          path,
          waitedMs,
          holderPid,
        }),
      );
      return false;
    });
  }
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
