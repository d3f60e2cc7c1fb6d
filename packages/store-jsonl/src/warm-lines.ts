import type { StoredLine } from "./stored-line.ts";

const maxBytes = 16 * 1024 * 1024;
/** Limits the number of lines too, because a line takes more memory than its bytes. */
const maxLines = 10_000;
const keptMs = 1000;

/**
 * Caches the recently decoded lines of one image, because a caller that opens a session mostly reads it next. Each line
 * is returned once, because its record then belongs to the reader. Unused lines are dropped after a second.
 */
export class WarmLines {
  #image: object | null = null;
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #lines: Map<number, StoredLine> = new Map();

  /** Keeps the first lines of a long transcript, because reading starts there. */
  keep(image: object, seq: number, line: StoredLine, sizeBytes: number): void {
    if (this.#image !== image) this.#begin(image);
    this.#bytes += sizeBytes;
    if (this.#bytes <= maxBytes && this.#lines.size < maxLines) this.#lines.set(seq, line);
  }

  take(image: object, seq: number): StoredLine | null {
    if (this.#image !== image) return null;
    const line = this.#lines.get(seq) ?? null;
    this.#lines.delete(seq);
    return line;
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#image = null;
    this.#bytes = 0;
    this.#lines.clear();
  }

  #begin(image: object): void {
    this.clear();
    this.#image = image;
    this.#timer = setTimeout(() => this.clear(), keptMs).unref();
  }
}
