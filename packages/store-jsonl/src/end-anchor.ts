import { crc32 } from "node:zlib";
import { ageMsOf, readRange } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { pauseShortly } from "./slices.ts";

const sizeBytes = 256;

/** A write takes at most this long. A file that changed more recently may still be written to. */
export const writingMs = 1000;
/** A write mostly ends within the first pause. More pauses are needed when its process has lost the processor. */
const maxNaps = 4;

/** Remembers the last bytes of a file that were read, to distinguish a file that grew from one that was replaced. */
export class EndAnchor {
  readonly to: number;
  readonly #from: number;
  readonly #crc: number;
  readonly #modifiedNs: bigint;

  private constructor(bytes: Uint8Array, to: number, modifiedNs: bigint) {
    this.to = to;
    this.#from = to - bytes.length;
    this.#crc = crc32(bytes);
    this.#modifiedNs = modifiedNs;
  }

  /** Creates an anchor from bytes that were just written up to `to`, without a read. */
  static written(bytes: Uint8Array, to: number, { modifiedNs }: FileFacts): EndAnchor {
    return new EndAnchor(bytes.subarray(-sizeBytes), to, modifiedNs);
  }

  static read(files: Files, handle: number, to: number, { modifiedNs }: FileFacts): EndAnchor {
    return new EndAnchor(readRange(files, handle, Math.max(0, to - sizeBytes), to), to, modifiedNs);
  }

  holds(files: Files, handle: number, facts: FileFacts): boolean {
    return !this.isTouched(facts) && this.isThere(files, handle);
  }

  /**
   * Tests for a new modification time with the same size. Then the file was changed in place, or a write is under way.
   */
  isTouched({ sizeBytes: size, modifiedNs }: FileFacts): boolean {
    return size === this.to && modifiedNs !== this.#modifiedNs;
  }

  isThere(files: Files, handle: number): boolean {
    return crc32(readRange(files, handle, this.#from, this.to)) === this.#crc;
  }
}

/**
 * Returns the facts of a file after a write that may be under way. A write changes the time before the size, so facts
 * from in between are read again shortly after. Without the wait the file would count as replaced and be read
 * completely.
 */
export function pastWrite(anchor: EndAnchor | null, files: Files, handle: number, facts: FileFacts): FileFacts {
  let now = facts;
  for (let naps = 0; naps < maxNaps && anchor?.isTouched(now) === true; naps++) {
    if (Math.abs(ageMsOf(now)) >= writingMs) break;
    pauseShortly();
    now = files.factsOf(handle);
  }
  return now;
}
