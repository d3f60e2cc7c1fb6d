import { createFinding } from "@throughline/core/internal";
import { type Finding } from "@throughline/core";
import { cutLog } from "./open-connection.ts";
import type { Connection } from "./connection.ts";
import type { LogRow } from "./statements.ts";
import { isBusy, nativeCode } from "./sqlite-errors.ts";
import { logReaders, sizeOf } from "./store-file.ts";

/** Pages of 8 KB that may wait in the log while commits come without a pause. Writing them back takes some milliseconds. */
const mostPages = 1000;
/** Looked at so often: without a commit between two looks it is quiet enough to write back what there is, */
const quietMs = 100;
/** if it is worth two flushes: half a megabyte. */
const fewestPages = 64;
/**
 * Reading the log's length takes a tenth of a turn: it is read after at most this number of commits, earlier when the
 * log grows.
 */
const mostCommitsBetween = 64;
/** A log that is longer on the disk, and cannot be started again, is reported. */
const largestLogBytes = 64 * 1024 * 1024;

/** What becomes of what the keeper notices. */
export interface LogKeeperEvents {
  tell(finding: Finding): void;
  /** A flush failed: what the kernel kept of it cannot be known. */
  fail(): void;
}

/**
 * Writes the log back into the database, so that it stays short. It runs when the store is quiet, or between two
 * commits when the log has grown, never within a commit. Reports which process prevents it.
 */
export class LogKeeper {
  readonly #path: string;
  readonly #events: LogKeeperEvents;
  #commitsUnseen = 0;
  #nextLookAfter = 1;
  #pagesSeen = 0;
  /** Grows while a reader needs the beginning of the log, so that it is not tried in vain after every commit. */
  #nextPages = mostPages;
  #toldBytes = largestLogBytes;
  #quiet: NodeJS.Timeout | null = null;
  /** False when there was a commit since the last look: moving the timer on would take more of each than noting this. */
  #isQuiet = false;
  #soon: NodeJS.Immediate | null = null;

  constructor(path: string, events: LogKeeperEvents) {
    this.#path = path;
    this.#events = events;
  }

  /** Called after every commit. */
  committed(connection: Connection): void {
    // A process that has nothing else to do may end: whoever writes next finds the log as it is.
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

  /** Ends what is planned, for the handle is closing. */
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
      // Others may write without a pause: then only the write lock, if it is free just now, lets the log begin anew.
      const isWhole = pages === written || isBegunAnew(statements.beginLogAnew.get());
      this.#nextPages = isWhole ? mostPages : pages - written + mostPages;
      this.#look(connection);
    } catch (error) {
      // A full disk or a lock: everything stands in the log, and is written back another time.
      if (!isBusy(error) && nativeCode(error) !== "SQLITE_FULL") this.#events.fail();
    }
  }

  /** A finding when the log is too large and cannot be cut; again when it has doubled. */
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

/** Pages of the log that do not stand in the database yet. */
function waitingPages({ statements }: Connection): number {
  try {
    const [, pages, written] = statements.logState.get() ?? [0, 0, 0];
    return pages - written;
  } catch {
    // The commit before it stands, whatever keeps the log from being looked at; it is looked at again.
    return 0;
  }
}

function isBegunAnew(state: LogRow | undefined): boolean {
  return state !== undefined && state[0] === 0;
}
