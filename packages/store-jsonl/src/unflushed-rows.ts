import type { RowChange } from "./session-row.ts";

const maxKeptRows = 4096;

/**
 * Tracks sessions whose line in the entries log may not be on the disk. Acknowledged records of such a session depend
 * on the line, because it states the session's key and file.
 */
export class UnflushedRows {
  readonly #ends: Map<string, number> = new Map();
  /** Marks the position before which every line counts as unflushed until a flush reached it. */
  #allBytes = 0;
  /** Marks the position up to which `#ends` was cleaned, so that each flush causes one cleanup. */
  #forgottenBytes = 0;

  /** Notes the lines of a change. Lines before `flushedBytes` are on the disk, so they can be dropped. */
  note({ op, rows }: RowChange, endBytes: number, flushedBytes: number): void {
    if (endBytes <= this.#allBytes) return;
    // A line that changes only the entry is left out, because it is acknowledged on its own.
    if (op === "catch-up" || (op === "save" && rows.every(({ revision }) => revision > 1))) return;
    if (this.#ends.size >= maxKeptRows && flushedBytes > this.#forgottenBytes) this.#forget(flushedBytes);
    for (const { sessionId } of rows) this.#ends.set(sessionId, endBytes);
  }

  isOnDisk(sessionId: string, flushedBytes: number): boolean {
    if ((this.#ends.get(sessionId) ?? this.#allBytes) > flushedBytes) return false;
    this.#ends.delete(sessionId);
    return true;
  }

  /** Notes every line of a log that is read for the first time, which costs less than to note each. */
  noteAll(endBytes: number): void {
    this.#allBytes = endBytes;
  }

  clear(): void {
    this.#ends.clear();
    this.#allBytes = 0;
    this.#forgottenBytes = 0;
  }

  /** Runs once per flush, so that reading a long log does not scan all rows again for every line. */
  #forget(flushedBytes: number): void {
    this.#forgottenBytes = flushedBytes;
    for (const [id, end] of this.#ends) if (end <= flushedBytes) this.#ends.delete(id);
  }
}
