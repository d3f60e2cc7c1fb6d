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

/** Up to where a log is known, and how to tell what belongs to it. */
export interface LogStanding {
  readonly log: LogPlace;
  /** False once another log has its name: what is known of this one is old then, and may have been purged. */
  isCurrent(): boolean;
  /** Whether a place the index knows is one of this log. */
  isOfLog(place: LogPlace): boolean;
}

const anchorBytes = 256;

/** The last bytes before a place in an open file. */
function anchorAt(files: Files, handle: number, endBytes: number): LogPlace["anchor"] {
  const from = Math.max(0, endBytes - anchorBytes);
  return { from, crc: crc32(readRange(files, handle, from, endBytes)) };
}

/** Where the open log stands for whoever read it up to `known`. */
export function standingOf(
  files: Files,
  path: string,
  open: { readonly handle: number; readonly identity: string },
  known: Pick<LogPlace, "endBytes" | "lineCount" | "removed">,
): LogStanding {
  const { handle, identity } = open;
  const anchor = withFileErrors(path, () => anchorAt(files, handle, known.endBytes));
  return {
    log: { identity, ...known, anchor },
    isCurrent: () => files.facts(path)?.identity === identity,
    isOfLog: (place) => isPlaceOf(files, path, open, place),
  };
}

/**
 * Whether a place is one of the open log. Its number alone is not enough: a rewritten log passes its number to a later
 * one, and a restored copy may be written into the same file.
 */
export function isPlaceOf(
  files: Files,
  path: string,
  { handle, identity }: { readonly handle: number; readonly identity: string },
  { anchor, endBytes, identity: known }: LogPlace,
): boolean {
  return withFileErrors(path, () => {
    if (known !== identity || files.factsOf(handle).sizeBytes < endBytes) return false;
    return crc32(readRange(files, handle, anchor.from, endBytes)) === anchor.crc;
  });
}
