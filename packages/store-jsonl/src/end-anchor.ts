import { crc32 } from "node:zlib";
import { ageMsOf, readRange } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { pauseShortly } from "./slices.ts";

const sizeBytes = 256;

/** No write takes longer. */
export const writingMs = 1000;
/** A write is mostly over before the first; one whose process has lost the processor meanwhile may take some. */
const maxNaps = 4;

/** The last bytes of a file that were understood, to distinguish a file that grew from one that replaced it. */
export class EndAnchor {
  /** Where they end. */
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

  /** Of bytes that were just written up to `to`. */
  static written(bytes: Uint8Array, to: number, { modifiedNs }: FileFacts): EndAnchor {
    return new EndAnchor(bytes.subarray(-sizeBytes), to, modifiedNs);
  }

  static read(files: Files, handle: number, to: number, { modifiedNs }: FileFacts): EndAnchor {
    return new EndAnchor(readRange(files, handle, Math.max(0, to - sizeBytes), to), to, modifiedNs);
  }

  /** Whether the file still has these bytes there. */
  holds(files: Files, handle: number, facts: FileFacts): boolean {
    return !this.isTouched(facts) && this.isThere(files, handle);
  }

  /** Whether the file has another time and no other size: it was changed in place, or is being written to just now. */
  isTouched({ sizeBytes: size, modifiedNs }: FileFacts): boolean {
    return size === this.to && modifiedNs !== this.#modifiedNs;
  }

  /** As `holds`, by the bytes alone. */
  isThere(files: Files, handle: number): boolean {
    return crc32(readRange(files, handle, this.#from, this.to)) === this.#crc;
  }
}

/**
 * What a look at a file found. A write changes its time before its size: a look in between is repeated a moment later.
 * Without that the file would count as another one, and be read as a whole.
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
