import type { RowChange } from "./session-row.ts";

const maxKept = 4096;

/**
 * Sessions whose line in the entries log may not be on the disk: this process or another has just written it. What is
 * acknowledged in such a session hangs on that line, which says what the session is called and where it is.
 */
export class UnflushedRows {
  /** Where the line ends, by session. */
  readonly #ends: Map<string, number> = new Map();
  /** What lies before this was forgotten. */
  #forgottenBytes = 0;

  /** `flushedBytes`: what is on the disk, for forgetting what lies there. */
  note({ op, rows }: RowChange, endBytes: number, flushedBytes: number): void {
    // What only the entry says may be lost: it is acknowledged by itself.
    if (op === "catch-up" || (op === "save" && rows.every(({ revision }) => revision > 1))) return;
    if (this.#ends.size >= maxKept && flushedBytes > this.#forgottenBytes) this.#forget(flushedBytes);
    for (const { sessionId } of rows) this.#ends.set(sessionId, endBytes);
  }

  isOnDisk(sessionId: string, flushedBytes: number): boolean {
    const end = this.#ends.get(sessionId);
    if (end === undefined) return true;
    if (end > flushedBytes) return false;
    this.#ends.delete(sessionId);
    return true;
  }

  clear(): void {
    this.#ends.clear();
    this.#forgottenBytes = 0;
  }

  /** Once for each flush: reading a long log must not look at all that was read with every line of it. */
  #forget(flushedBytes: number): void {
    this.#forgottenBytes = flushedBytes;
    for (const [id, end] of this.#ends) if (end <= flushedBytes) this.#ends.delete(id);
  }
}
