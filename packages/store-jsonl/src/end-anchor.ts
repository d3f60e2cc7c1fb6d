import { ageMsOf, readRange } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { pauseShortly } from "./slices.ts";

/** A write takes at most this long. A file that changed more recently may still be written to. */
export const writingMs = 1000;
/** A write mostly ends within the first pause. More pauses are needed when its process has lost the processor. */
const maxNaps = 4;

/** Holds the last bytes of a file that were read or written, to distinguish a file that grew from one that was replaced. */
export interface EndAnchor {
  readonly to: number;
  readonly bytes: Uint8Array;
  readonly modifiedNs: bigint;
}

/** Limits the bytes of an anchor. */
export const anchorBytes = 256;

export function readAnchor(files: Files, handle: number, to: number, { modifiedNs }: FileFacts): EndAnchor {
  return { to, bytes: readRange(files, handle, Math.max(0, to - anchorBytes), to), modifiedNs };
}

/** Tests for a new modification time with the same size. Then the file was changed in place, or a write is under way. */
function isTouched({ to, modifiedNs }: EndAnchor, facts: FileFacts): boolean {
  return facts.sizeBytes === to && facts.modifiedNs !== modifiedNs;
}

export function holdsAnchor(anchor: EndAnchor, files: Files, handle: number, facts: FileFacts): boolean {
  return !isTouched(anchor, facts) && hasAnchor(anchor, files, handle);
}

export function hasAnchor({ to, bytes }: EndAnchor, files: Files, handle: number): boolean {
  return Buffer.compare(readRange(files, handle, to - bytes.length, to), bytes) === 0;
}

/**
 * Returns the facts of a file after a write that may be under way. A write changes the time before the size, so facts
 * from in between are read again shortly after. Without the wait the file would count as replaced and be read
 * completely.
 */
export function pastWrite(anchor: EndAnchor | null, files: Files, handle: number, facts: FileFacts): FileFacts {
  let now = facts;
  for (let naps = 0; naps < maxNaps && anchor !== null && isTouched(anchor, now); naps++) {
    if (Math.abs(ageMsOf(now)) >= writingMs) break;
    pauseShortly();
    now = files.factsOf(handle);
  }
  return now;
}
