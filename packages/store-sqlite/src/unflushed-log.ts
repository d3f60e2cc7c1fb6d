import { cutLog } from "./open-connection.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./sqlite-errors.ts";
import { createPrivateFile, isThere, removeFile } from "./store-file.ts";

/** Stands behind the name of a store in the name of the file that marks a failed flush. */
const ending = ".flush-failed";

/**
 * Tracks pages of the log that a failed flush left in doubt: the system may have dropped them, although it still reads
 * them. Another flush would succeed without them. So they are written to the database and flushed there before anything
 * behind them in the log is acknowledged. A file beside the store marks this for every process until then.
 */
export class UnflushedLog {
  readonly #mark: string;
  readonly #connection: Connection;
  #hasFailed = false;

  constructor(path: string, connection: Connection) {
    this.#mark = `${path}${ending}`;
    this.#connection = connection;
  }

  get isWaiting(): boolean {
    return this.#hasFailed || isThere(this.#mark);
  }

  failed(): void {
    this.#hasFailed = true;
    try {
      createPrivateFile(this.#mark);
    } catch {
      // If the disk does not take the file either, this handle still knows.
    }
  }

  /**
   * Writes the log back. Returns false while a reader elsewhere keeps a part of it.
   * @throws the error of SQLite when the disk fails again
   */
  write(): boolean {
    try {
      if (!cutLog(this.#connection) && !isWrittenBack(this.#connection)) return false;
    } catch (error) {
      // Writing back flushes the log first, so what other processes wrote meanwhile is in doubt as well.
      if (!isBusy(error)) this.failed();
      throw error;
    }
    this.#hasFailed = false;
    removeFile(this.#mark);
    return true;
  }
}

function isWrittenBack({ statements }: Connection): boolean {
  const [, pages, written] = statements.writeBack.get() ?? [0, 1, 0];
  return pages === written;
}
