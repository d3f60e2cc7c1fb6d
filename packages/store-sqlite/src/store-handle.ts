import { createFinding, refused } from "@throughline/core/internal";
import { type Finding, hasErrorCode, ThroughlineError } from "@throughline/core";
import type { HandleLife } from "@throughline/store-kit/internal";
import { LogKeeper } from "./log-keeper.ts";
import { closeDatabase, cutLog, openConnection } from "./open-connection.ts";
import type { Connection, OpenOptions } from "./connection.ts";
import { openUnwritable } from "./open-unwritable.ts";
import { isUnreadable, recoverStore } from "./backup-store.ts";
import { isBusy, isFailedFlush, nativeCode, storeError } from "./sqlite-errors.ts";
import { fileSystemOf } from "./file-system.ts";
import type { StoreContext, WriteContext } from "./store-context.ts";
import { WriteQueue, type Commit, type WriteOptions } from "./write-queue.ts";

interface Opened {
  readonly connection: Connection;
  readonly writes: WriteQueue;
  readonly log: LogKeeper;
}

/** Called with the connection and its commit after each commit, and with null when the handle closes. */
export type Follower = (connection: Connection | null, commit: Commit) => void;

/**
 * Opens the file with the first operation and closes it once. It waits for other processes without blocking this one.
 */
export class StoreHandle {
  readonly context: StoreContext;
  readonly life: HandleLife;
  readonly #options: OpenOptions;
  readonly #followers = new Set<Follower>();
  /** Holds the functions that run once the database is closed. */
  readonly #held: (() => void)[] = [];
  #opening: Promise<Opened> | null = null;
  #opened: Opened | null = null;

  constructor(context: StoreContext, options: OpenOptions, life: HandleLife) {
    this.context = context;
    this.#options = options;
    this.life = life;
  }

  /** Calls the follower after every commit of this handle, and when it closes. Returns the function that ends that. */
  follow(follower: Follower): () => void {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  async write<Result>(run: (context: WriteContext) => Result, options: WriteOptions): Promise<Result> {
    this.life.begin(options.signal);
    if (this.#opened === null) {
      this.#opened = await this.#open();
      this.life.begin(options.signal);
    }
    return this.#opened.writes.submit(run, options);
  }

  async read<Result>(run: (connection: Connection) => Result, signal?: AbortSignal): Promise<Result> {
    this.life.begin(signal);
    const { connection } = await this.#open();
    return this.#retryWhileBusy(() => {
      this.life.begin(signal);
      connection.assertCurrent();
      return run(connection);
    }, signal);
  }

  /**
   * Runs a write that removes content, also from the log. `goOn` removes the rest in commits of its own until it
   * returns false, and other writes run in between. Closing waits for all of it.
   * @throws {ThroughlineError} STORE_LOCKED while a reader elsewhere keeps the log; asking again completes it
   */
  async remove<Result>(
    run: (context: WriteContext) => Result,
    options: WriteOptions,
    goOn?: (context: WriteContext) => boolean,
  ): Promise<Result> {
    return this.life.track(async () => {
      const result = await this.write(run, options);
      if (goOn !== undefined) await this.#removeRest(goOn);
      await this.#scrub();
      return result;
    });
  }

  async #removeRest(goOn: (context: WriteContext) => boolean): Promise<void> {
    const { writes } = await this.#open();
    try {
      // A lower durability is enough, because rows that a power cut brings back are deleted again.
      while (await writes.submit(goOn, { durability: "process" }));
    } catch (cause) {
      const { code, message: what, details } = storeError(cause, this.context.path);
      throw new ThroughlineError(code, `The session is gone, but not all of its content yet. ${what}`, {
        outcome: "unknown",
        details,
        cause,
        remedy: "Repair what is named; the next purge, and the next handle that writes, deletes the rest.",
      });
    }
  }

  /** Overwrites deleted content in the database, and cuts the log. */
  async #scrub(): Promise<void> {
    const { connection, writes } = await this.#open();
    try {
      await this.#retryWhileBusy(() => {
        if (!cutLog(connection)) throw refused("STORE_LOCKED", "A reader keeps the log from being cut.");
      });
    } catch (cause) {
      const { code, message: what, details } = storeError(cause, this.context.path);
      if (isFailedFlush(cause)) writes.flushFailed();
      // The write itself is committed.
      if (code !== "STORE_LOCKED") throw new ThroughlineError(code, what, { outcome: "unknown", details, cause });
      const message =
        "The content was removed, but another connection keeps the log, which still holds it, from being cut.";
      throw new ThroughlineError("STORE_LOCKED", message, {
        outcome: "unknown",
        cause,
        details: { path: this.context.path },
        remedy: "Ask again, or close every handle of the store: the last one cuts the log.",
      });
    }
  }

  /** Registers a function that runs once the database is closed, or the handle is closed without it. */
  whenClosed(release: () => void): void {
    this.#held.push(release);
  }

  /** Closes the handle. `stop` ends the work that still uses it. */
  close(stop: () => Promise<void>): Promise<void> {
    const release = async (): Promise<void> => {
      try {
        await stop();
        await this.#closeFile();
      } finally {
        for (const each of this.#held.splice(0)) each();
      }
    };
    return this.life.close(release, () => this.#notify(null, { events: [], grown: new Set() }));
  }

  async #closeFile(): Promise<void> {
    const opened = await this.#opening?.catch(() => null);
    if (opened === undefined || opened === null) return;
    const { connection, writes, log } = opened;
    await writes.drain();
    log.stop();
    try {
      // A handle that wrote nothing has nothing to clean up.
      if (writes.hasWritten && !connection.isCopy) {
        connection.database.pragma("optimize");
        cutLog(connection);
      }
    } catch (error) {
      if (isFailedFlush(error)) writes.flushFailed();
      // The next process to open the file does this work, because the log holds what was acknowledged.
      const canWait = writes.isUnflushed || isBusy(error) || /^SQLITE_(READONLY|FULL)/.test(nativeCode(error));
      if (!canWait) throw storeError(error, this.context.path);
    } finally {
      closeDatabase(connection.database);
    }
  }

  async #open(): Promise<Opened> {
    this.#opening ??= this.#retryWhileBusy(() => {
      const connection = this.#connect();
      const log = new LogKeeper(this.context.path, {
        tell: (finding) => this.tell(finding),
        fail: () => writes.flushFailed(),
      });
      const writes: WriteQueue = new WriteQueue(this.context, connection, (commit) => {
        log.committed(connection);
        if (commit.events.length === 0) return;
        this.life.announce(...commit.events);
        this.#notify(connection, commit);
      });
      return { connection, writes, log };
    }).catch((error: unknown) => {
      // The reason that kept the file from being opened may be gone the next time.
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** Opens the file. A damaged file is replaced by its newest backup, and a finding reports that. */
  #connect(): Connection {
    const { path, clock } = this.context;
    const remote = fileSystemOf(path);
    try {
      const connection = openConnection(this.#options);
      for (const finding of connection.findings) this.tell(finding);
      if (remote !== null) this.tell(createFinding("FILE_SYSTEM_REMOTE", `The store lies on ${remote}.`, { path }));
      return connection;
    } catch (error) {
      const unwritable = hasErrorCode(error, "STORE_READ_ONLY") ? openUnwritable(this.#options, error) : null;
      if (unwritable !== null) return this.#openedToRead(unwritable);
      const finding =
        this.#options.recover && isUnreadable(error) ? recoverStore(this.#options, clock.nowMs(), error) : null;
      if (finding === null) throw error;
      this.tell(finding);
      return openConnection(this.#options);
    }
  }

  #openedToRead(connection: Connection): Connection {
    for (const finding of connection.findings) this.tell(finding);
    return connection;
  }

  /** Tries until no other connection is in the way, and sleeps in between. */
  async #retryWhileBusy<Result>(attempt: () => Result, signal?: AbortSignal): Promise<Result> {
    const { clock, random, lockTimeoutMs, path } = this.context;
    for (let startedMs = clock.nowMs(); ;) {
      try {
        return attempt();
      } catch (error) {
        const nowMs = clock.nowMs();
        // Without this line, a clock that is set back would extend the timeout.
        startedMs = Math.min(startedMs, nowMs);
        const isOver = nowMs - startedMs >= lockTimeoutMs;
        if (isOver || !(isBusy(error) || hasErrorCode(error, "STORE_LOCKED"))) throw storeError(error, path);
      }
      await clock.sleep(1 + (random.uint32() % 8), signal);
    }
  }

  /** Reports a finding about the file to the listener. */
  tell(finding: Finding): void {
    this.life.announce({ name: "finding", ref: null, finding });
  }

  #notify(connection: Connection | null, commit: Commit): void {
    for (const follower of this.#followers) follower(connection, commit);
  }
}
