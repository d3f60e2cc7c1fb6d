import type { SplitLine } from "@throughline/openclaw-format";
import { readRange } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { EntriesLogOptions } from "./read-log.ts";
import { decodeRowChange, type RowChange } from "./session-row.ts";

/**
 * What stands behind the last line feed of the entries log. Its writer may be in the middle of it, or dead: whoever writes next,
 * under the lock, finds out.
 */
export class LogTail {
  /** Null: the log ends with a line feed. */
  at: number | null = null;
  /** A whole line that lacks only its line feed. It counts, as in a transcript. */
  #line: Uint8Array = new Uint8Array(0);

  /** Whether it is a whole line. */
  get isWhole(): boolean {
    return this.#line.length > 0;
  }

  /** Where the log ends for those who read it; `endBytes`: the place behind its last line feed. */
  endOf(endBytes: number): number {
    return endBytes + this.#line.length;
  }

  /** The change the last line stands for; null where it is not whole. A power cut may take the line feed alone. */
  take(
    { bytes, byteOffset }: SplitLine,
    { codec, agent }: Pick<EntriesLogOptions, "codec" | "agent">,
  ): RowChange | null {
    this.at = byteOffset;
    const read = decodeRowChange(Buffer.from(bytes).toString(), codec, agent);
    if (read?.isChecksumRight !== true) return null;
    this.#line = Uint8Array.from(bytes);
    return read.change;
  }

  /** Whether its writer took it back and something else stands in its place. */
  isOther(files: Files, open: { readonly handle: number }): boolean {
    if (this.at === null || !this.isWhole) return false;
    return Buffer.compare(readRange(files, open.handle, this.at, this.endOf(this.at)), this.#line) !== 0;
  }

  clear(): void {
    this.at = null;
    this.#line = new Uint8Array(0);
  }
}
