import { fileError, isMissing, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";
import type { DoubtfulBytes } from "./unflushed-marks.ts";

/** The bytes of one file that may not be on the disk although a later flush succeeds. */
export class Doubt {
  readonly #files: Files;
  readonly #marks: UnflushedMarks;
  #bytes: DoubtfulBytes | null = null;

  constructor(files: Files, marks: UnflushedMarks) {
    this.#files = files;
    this.#marks = marks;
  }

  /** Whether this process knows of such bytes. */
  get isThere(): boolean {
    return this.#bytes !== null;
  }

  /** A flush of the file failed; `from`: up to there it was on the disk. The first place counts. */
  note(identity: string, from: number): void {
    this.suspect(identity, from);
    if (this.#bytes !== null) this.#marks.note(this.#bytes);
  }

  /** A flush may have failed, in a process that died before it could say so. */
  suspect(identity: string, from: number): void {
    if (this.#bytes?.identity !== identity) this.#bytes = { identity, from };
    else if (from < this.#bytes.from) this.#bytes = { identity, from };
  }

  /** Whether another process knows of such bytes of the file. */
  isMarked(identity: string): boolean {
    return this.#marks.find(identity) !== null;
  }

  /**
   * Puts these bytes on the disk again, also those that another process has marked. Under the file's lock, before anything behind
   * them is written or acknowledged. True when there were any.
   * @throws {ThroughlineError} STORE_IO: then they stay in doubt
   */
  settle(path: string, identity: string): boolean {
    const marked = withFileErrors(path, () => this.#marks.find(identity));
    const all = [this.#bytes, marked].filter((bytes) => bytes !== null);
    for (const bytes of all) flushAgain(this.#files, path, bytes);
    withFileErrors(path, () => {
      for (const bytes of all) this.#marks.clear(bytes.identity);
    });
    this.#bytes = null;
    return all.length > 0;
  }
}

const chunkBytes = 1024 * 1024;

/**
 * Puts bytes whose flush failed on the disk after all: a later flush would leave them out and still succeed, so they
 * are written over with themselves first. What others read meanwhile does not change. Under the file's lock.
 */
function flushAgain(files: Files, path: string, { identity, from }: DoubtfulBytes): void {
  try {
    const handle = files.open(path, "rewrite");
    try {
      const facts = files.factsOf(handle);
      if (facts.identity !== identity) return;
      for (let position = from; position < facts.sizeBytes;) {
        const bytes = readRange(files, handle, position, Math.min(position + chunkBytes, facts.sizeBytes));
        if (bytes.length === 0) break;
        for (let written = 0; written < bytes.length;) {
          const count = files.writeAt(handle, bytes.subarray(written), position + written);
          if (count === 0) throw Object.assign(new Error("nothing could be written"), { code: "EIO" });
          written += count;
        }
        position += bytes.length;
      }
      files.flushNow(handle);
    } finally {
      files.close(handle);
    }
  } catch (error) {
    if (!isMissing(error)) throw fileError(error, path);
  }
}
