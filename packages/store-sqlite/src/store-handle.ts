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

/** What is there once the file is open. */
interface Opened {
  readonly connection: Connection;
  readonly writes: WriteQueue;
  readonly log: LogKeeper;
}

/** Called with the connection that has committed, and what; null when the handle closes. */
export type Follower = (connection: Connection | null, commit: Commit) => void;

/** The life of one handle: opened by the first operation, closed once. Waits for other processes without stopping this one. */
export class StoreHandle {
  readonly context: StoreContext;
  readonly life: HandleLife;
  readonly #options: OpenOptions;
  readonly #followers = new Set<Follower>();
  /** What is let go of when the database is closed. */
  readonly #held: (() => void)[] = [];
  #opening: Promise<Opened> | null = null;
  #opened: Opened | null = null;

  constructor(context: StoreContext, options: OpenOptions, life: HandleLife) {
    this.context = context;
    this.#options = options;
    this.life = life;
  }

  /** Calls the follower after every commit of this handle, and when it closes. Gives what ends that. */
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

  /** A short, synchronous read. */
  async read<Result>(run: (connection: Connection) => Result, signal?: AbortSignal): Promise<Result> {
    this.life.begin(signal);
    const { connection } = await this.#open();
    return this.#patiently(() => {
      this.life.begin(signal);
      connection.assertCurrent();
      return run(connection);
    }, signal);
  }

  /**
   * A write that removes content, from the log too. `goOn` removes the rest, in commits of their own, until it returns
   * false; other writes run in between. Closing waits for all of it.
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
      // Not so durable as it might be: what a power cut takes back is deleted once more.
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

  /** What was deleted is written over in the database, and the log is cut to nothing. */
  async #scrub(): Promise<void> {
    const { connection, writes } = await this.#open();
    try {
      await this.#patiently(() => {
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

  /** Called once the database is closed, or the handle is without having opened it. */
  whenClosed(release: () => void): void {
    this.#held.push(release);
  }

  /** `stop` ends what still works on the handle. */
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
      // A handle that wrote nothing has nothing to tidy up.
      if (writes.hasWritten && !connection.isCopy) {
        connection.database.pragma("optimize");
        cutLog(connection);
      }
    } catch (error) {
      if (isFailedFlush(error)) writes.flushFailed();
      // Whoever opens the file next does it; what was acknowledged stands in the log.
      const canWait = writes.isUnflushed || isBusy(error) || /^SQLITE_(READONLY|FULL)/.test(nativeCode(error));
      if (!canWait) throw storeError(error, this.context.path);
    } finally {
      closeDatabase(connection.database);
    }
  }

  async #open(): Promise<Opened> {
    this.#opening ??= this.#patiently(() => {
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
      // What kept the file from being opened may be gone the next time.
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

  /** Tries until no other connection is in the way, sleeping in between. */
  async #patiently<Result>(attempt: () => Result, signal?: AbortSignal): Promise<Result> {
    const { clock, random, lockTimeoutMs, path } = this.context;
    for (let startedMs = clock.nowMs(); ;) {
      try {
        return attempt();
      } catch (error) {
        const nowMs = clock.nowMs();
        // A clock that is set back lets nobody wait until it has caught up.
        startedMs = Math.min(startedMs, nowMs);
        const isOver = nowMs - startedMs >= lockTimeoutMs;
        if (isOver || !(isBusy(error) || hasErrorCode(error, "STORE_LOCKED"))) throw storeError(error, path);
      }
      await clock.sleep(1 + (random.uint32() % 8), signal);
    }
  }

  /** Reports to the listener what was noticed about the file. */
  tell(finding: Finding): void {
    this.life.announce({ name: "finding", ref: null, finding });
  }

  #notify(connection: Connection | null, commit: Commit): void {
    for (const follower of this.#followers) follower(connection, commit);
  }
}
