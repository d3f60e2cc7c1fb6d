import { createFinding } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { cutLog } from "./open-connection.ts";
import type { Connection } from "./connection.ts";
import type { LogRow } from "./statements.ts";
import { isBusy, nativeCode } from "./sqlite-errors.ts";
import { logReaders, sizeOf } from "./store-file.ts";

/**
 * While commits come without a pause, at most this many pages of 8 KB wait in the log. Writing them back takes some
 * milliseconds.
 */
const mostPages = 1000;
/** The log is written back after an interval of this length without a commit, */
const quietMs = 100;
/** if it has half a megabyte, which is worth two flushes. */
const fewestPages = 64;
/**
 * Reading the length of the log takes a tenth of a turn. It is read after at most this many commits, and earlier when
 * the log grows.
 */
const mostCommitsBetween = 64;
/** A longer log that cannot be restarted is reported. */
const largestLogBytes = 64 * 1024 * 1024;

export interface LogKeeperEvents {
  tell(finding: Finding): void;
  /** Reports a failed flush, after which the content of the log is in doubt. */
  fail(): void;
}

/**
 * Writes the log back into the database, so that the log stays short. It runs when the store is quiet, or between two
 * commits when the log has grown, never within a commit. It reports the process that prevents it.
 */
export class LogKeeper {
  readonly #path: string;
  readonly #events: LogKeeperEvents;
  #commitsUnseen = 0;
  #nextLookAfter = 1;
  #pagesSeen = 0;
  /** Grows while a reader needs the beginning of the log, so that not every commit tries in vain. */
  #nextPages = mostPages;
  #toldBytes = largestLogBytes;
  #quiet: NodeJS.Timeout | null = null;
  /** False when there was a commit since the last tick. Setting a flag costs a commit less than moving a timer. */
  #isQuiet = false;
  #soon: NodeJS.Immediate | null = null;

  constructor(path: string, events: LogKeeperEvents) {
    this.#path = path;
    this.#events = events;
  }

  committed(connection: Connection): void {
    // The timer does not keep the process alive, because the next writer finds the log as it is.
    this.#isQuiet = false;
    this.#quiet ??= setTimeout(() => this.#tidy(connection), quietMs).unref();
    if (++this.#commitsUnseen < this.#nextLookAfter || this.#soon !== null) return;
    const pages = waitingPages(connection);
    const growth = Math.max((pages - this.#pagesSeen) / this.#commitsUnseen, 1);
    this.#pagesSeen = pages;
    this.#commitsUnseen = 0;
    const commitsLeft = Math.floor((this.#nextPages - pages) / growth / 2);
    this.#nextLookAfter = Math.min(Math.max(commitsLeft, 1), mostCommitsBetween);
    if (pages >= this.#nextPages) this.#soon = setImmediate(() => this.#writeBack(connection));
  }

  /** Cancels the planned work, because the handle is closing. */
  stop(): void {
    if (this.#quiet !== null) clearTimeout(this.#quiet);
    if (this.#soon !== null) clearImmediate(this.#soon);
    this.#quiet = null;
    this.#soon = null;
  }

  #tidy(connection: Connection): void {
    if (!this.#isQuiet) {
      this.#isQuiet = true;
      this.#quiet?.refresh();
    } else if (waitingPages(connection) >= fewestPages) this.#writeBack(connection);
    else this.stop();
  }

  #writeBack(connection: Connection): void {
    this.stop();
    this.#pagesSeen = 0;
    try {
      const { statements } = connection;
      const [, pages, written] = statements.writeBack.get() ?? [0, 0, 0];
      // Other processes may write without a pause. Then the log restarts only under the write lock, if that is free
      // now.
      const isWhole = pages === written || isBegunAnew(statements.beginLogAnew.get());
      this.#nextPages = isWhole ? mostPages : pages - written + mostPages;
      this.#look(connection);
    } catch (error) {
      // After a full disk or a lock, the log still holds everything and is written back later.
      if (!isBusy(error) && nativeCode(error) !== "SQLITE_FULL") this.#events.fail();
    }
  }

  /** Reports a log that is too large and cannot be cut, and again each time it has doubled. */
  #look(connection: Connection): void {
    const sizeBytes = sizeOf(`${this.#path}-wal`);
    if (sizeBytes <= this.#toldBytes) return;
    if (cutLog(connection)) {
      this.#toldBytes = largestLogBytes;
      return;
    }
    this.#toldBytes = sizeBytes * 2;
    const readers = logReaders(this.#path);
    const who = readers.length === 0 ? "a reader" : `process ${readers.join(", ")}`;
    const message = `The log has ${sizeBytes} bytes, and ${who} keeps it from being cut.`;
    this.#events.tell(createFinding("LOG_OVERSIZED", message, { path: `${this.#path}-wal` }));
  }
}

function waitingPages({ statements }: Connection): number {
  try {
    const [, pages, written] = statements.logState.get() ?? [0, 0, 0];
    return pages - written;
  } catch {
    // The commit before is safe, whatever keeps the log from being read. The next commit tries again.
    return 0;
  }
}

function isBegunAnew(state: LogRow | undefined): boolean {
  return state !== undefined && state[0] === 0;
}
