import { crc32 } from "node:zlib";
import { readRange } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";

const sizeBytes = 256;

/** The last bytes of a file that were understood, to tell one that grew from one that was written anew in its place. */
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
    if (facts.sizeBytes === this.to && facts.modifiedNs !== this.#modifiedNs) return false;
    return this.isThere(files, handle);
  }

  /** As `holds`, by the bytes alone. */
  isThere(files: Files, handle: number): boolean {
    return crc32(readRange(files, handle, this.#from, this.to)) === this.#crc;
  }
}
