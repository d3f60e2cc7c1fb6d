import { createFinding, type Finding } from "@throughline/core";
import { cutLog, type Connection } from "./open-connection.ts";
import { logReaders, sizeOf } from "./store-file.ts";

/** The log is written back from 16 MiB on; it grows beyond that only while a reader needs its beginning. */
const largestLogBytes = 64 * 1024 * 1024;
/** Its size is looked at once in so many commits. */
const commitsBetween = 32;

/** Keeps the log of one connection bounded, and says who prevents it. */
export class LogWatch {
  readonly #path: string;
  #commits = 0;
  #toldBytes = largestLogBytes;

  constructor(path: string) {
    this.#path = path;
  }

  /** Called after every commit. A finding when the log is too large and cannot be cut; again when it has doubled. */
  look(connection: Connection): Finding | null {
    if (++this.#commits % commitsBetween !== 0) return null;
    const sizeBytes = sizeOf(`${this.#path}-wal`);
    if (sizeBytes <= this.#toldBytes) return null;
    if (cutLog(connection)) {
      this.#toldBytes = largestLogBytes;
      return null;
    }
    this.#toldBytes = sizeBytes * 2;
    const readers = logReaders(this.#path);
    const who = readers.length === 0 ? "a reader" : `process ${readers.join(", ")}`;
    return createFinding("LOG_OVERSIZED", `The log has ${sizeBytes} bytes, and ${who} keeps it from being cut.`, {
      path: `${this.#path}-wal`,
    });
  }
}
