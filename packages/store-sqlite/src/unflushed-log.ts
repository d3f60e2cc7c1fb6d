import { cutLog } from "./open-connection.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./sqlite-errors.ts";
import { createPrivateFile, isThere, removeFile } from "./store-file.ts";

/** Between the name of a store and that of the file which says that a flush of its log has failed. */
const ending = ".flush-failed";

/**
 * What a failed flush leaves: pages of the log that the system may have given up, although it still reads them. Another
 * flush would succeed without them, so they are written to the database instead, and that is flushed, before anything that
 * stands behind them in the log is acknowledged. A file beside the store says so to every process, for as long as it lasts.
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
      // A disk that takes no file either: this handle knows.
    }
  }

  /**
   * Writes the log back; false while a reader elsewhere keeps a part of it from being.
   * @throws what SQLite says when the disk fails again
   */
  write(): boolean {
    try {
      if (!cutLog(this.#connection) && !isWrittenBack(this.#connection)) return false;
    } catch (error) {
      // Writing back flushes the log first: what others have written into it meanwhile is in doubt as well.
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
