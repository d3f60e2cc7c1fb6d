import { crc32 } from "node:zlib";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";

/** Up to where in the entries log the index knows everything. */
export interface LogPlace {
  readonly identity: string;
  readonly endBytes: number;
  readonly lineCount: number;
  /** The last bytes before the end, to tell a log that grew from another one. */
  readonly anchor: { readonly from: number; readonly crc: number };
  /** Purges that may be unfinished. */
  readonly removed: readonly string[];
}

const anchorBytes = 256;

/** A place in the open log. */
export function placeIn(
  files: Files,
  path: string,
  { handle, identity }: { readonly handle: number; readonly identity: string },
  known: Pick<LogPlace, "endBytes" | "lineCount" | "removed">,
): LogPlace {
  return { identity, ...known, anchor: withFileErrors(path, () => anchorAt(files, handle, known.endBytes)) };
}

/** The last bytes before a place in an open file. */
function anchorAt(files: Files, handle: number, endBytes: number): LogPlace["anchor"] {
  const from = Math.max(0, endBytes - anchorBytes);
  return { from, crc: crc32(readRange(files, handle, from, endBytes)) };
}

/** Whether the log still has at the place what it had. */
export function isStill(files: Files, handle: number, { anchor, endBytes }: LogPlace): boolean {
  return crc32(readRange(files, handle, anchor.from, endBytes)) === anchor.crc;
}
