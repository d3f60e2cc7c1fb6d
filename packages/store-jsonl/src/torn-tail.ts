import { createFinding, quote, refused } from "@throughline/core/internal";
import { type Finding } from "@throughline/core";
import { strangeTranscript } from "@throughline/openclaw-format/internal";
import { appendAll, copyBytes, flushFolder, folderOf, readRange } from "./file-work.ts";
import type { Files } from "./files.ts";

/** The end of a file that was never acknowledged. */
export interface TornEnd {
  readonly handle: number;
  readonly path: string;
  /** Of the session it belongs to. */
  readonly key: string | null;
  readonly code: "TAIL_TORN" | "BATCH_INCOMPLETE";
  readonly from: number;
  /** Where copies of such ends are kept. */
  readonly folder: string;
  readonly nowMs: number;
}

/**
 * Cuts off what was never acknowledged, once a copy of it is safe, and reports it. Under the file's lock.
 * @throws {ThroughlineError} STORE_LOCKED if the file grew meanwhile: its end is the line of a program without our
 * lock; STORE_CORRUPT for several whole records, which a torn write cannot leave
 */
export function setTailAside(files: Files, { handle, path, key, code, from, folder, nowMs }: TornEnd): Finding {
  const { sizeBytes } = files.factsOf(handle);
  assertIsTorn(path, readRange(files, handle, from, Math.min(sizeBytes, from + copyBytes)), from);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const keptAt = cutTail(files, handle, { from, to: sizeBytes }, `${folder}/${name}.${nowMs}.${from}`);
  const message = `${sizeBytes - from} bytes at the end were never acknowledged; they are kept in ${quote(keptAt)}.`;
  return createFinding(code, message, { path, key, byteOffset: from, repaired: true });
}

/** Lines whose ends were made carriage returns, as by an old editor, are one line without an end to us, acknowledged all the same. */
export function assertIsTorn(path: string, beginning: Uint8Array, byteOffset: number): void {
  if (strangeTranscript(beginning)?.endsInReturns !== true) return;
  const message = `${quote(path)} ends its lines with carriage returns alone from byte ${byteOffset} on: nothing was cut off.`;
  throw refused("STORE_CORRUPT", message, { path, byteOffset });
}

/** Gives the name of the copy: nothing has it yet. */
function cutTail(
  files: Files,
  handle: number,
  span: { readonly from: number; readonly to: number },
  wanted: string,
): string {
  // Whoever needs room may have removed what was set aside, with the folder.
  files.makeFolder(folderOf(wanted));
  // A copy of the same bytes may be there: the computer stopped after it was made.
  let keptAt = wanted;
  for (let count = 2; files.facts(keptAt) !== null; count++) keptAt = `${wanted}-${count}`;
  const copy = files.open(keptAt, "create");
  try {
    for (let from = span.from; from < span.to; from += copyBytes)
      appendAll(
        files,
        copy,
        readRange(files, handle, from, Math.min(span.to, from + copyBytes)),
        from - span.from,
        keptAt,
      );
    files.flushNow(copy);
  } finally {
    files.close(copy);
  }
  flushFolder(files, folderOf(keptAt));
  if (files.factsOf(handle).sizeBytes !== span.to) {
    files.remove(keptAt);
    throw refused("STORE_LOCKED", `Another program is writing the end that ${quote(keptAt)} was to hold.`, { keptAt });
  }
  files.truncate(handle, span.from);
  return keptAt;
}
