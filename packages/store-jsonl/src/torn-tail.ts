import { createFinding, quote, refused } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { strangeTranscript } from "@throughline/openclaw-format/internal";
import { appendAll, copyBytes, flushFolder, folderOf, readRange } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface TornEnd {
  readonly handle: number;
  readonly path: string;
  readonly key: string | null;
  readonly code: "TAIL_TORN" | "BATCH_INCOMPLETE";
  readonly from: number;
  readonly folder: string;
  readonly nowMs: number;
}

/**
 * Truncates an unacknowledged end after saving a copy, and reports it. Call it under the file's lock.
 * @throws {ThroughlineError} STORE_LOCKED if the file grew meanwhile, because another program is writing its end without
 * the lock; STORE_CORRUPT for several whole records, which a torn write cannot leave
 */
export function setTailAside(files: Files, { handle, path, key, code, from, folder, nowMs }: TornEnd): Finding {
  const { sizeBytes } = files.factsOf(handle);
  assertIsTorn(path, readRange(files, handle, from, Math.min(sizeBytes, from + copyBytes)), from);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const keptAt = cutTail(files, handle, { from, to: sizeBytes }, `${folder}/${name}.${nowMs}.${from}`);
  const message = `${sizeBytes - from} bytes at the end were never acknowledged; they are kept in ${quote(keptAt)}.`;
  return createFinding(code, message, { path, key, byteOffset: from, repaired: true });
}

/**
 * Refuses to truncate lines whose ends became carriage returns, as by an old editor. They look like one unfinished
 * line, but were acknowledged.
 */
export function assertIsTorn(path: string, beginning: Uint8Array, byteOffset: number): void {
  if (strangeTranscript(beginning)?.endsInReturns !== true) return;
  const message = `${quote(path)} ends its lines with carriage returns alone from byte ${byteOffset} on: nothing was cut off.`;
  throw refused("STORE_CORRUPT", message, { path, byteOffset });
}

function cutTail(
  files: Files,
  handle: number,
  span: { readonly from: number; readonly to: number },
  wanted: string,
): string {
  // The folder may be missing, because users may delete saved copies to free space.
  files.makeFolder(folderOf(wanted));
  // A copy of the same bytes may exist, if the computer stopped after it was written.
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
