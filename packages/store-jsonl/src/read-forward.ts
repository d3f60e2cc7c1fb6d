import type { ReadPayload, RecordFor } from "@throughline/core";
import type { HeldSession } from "./held-session.ts";
import type { Page, PageBounds } from "./record-page.ts";
import { decodeStoredLine, type StoredLine } from "./stored-line.ts";
import type { Transcript } from "./transcript.ts";
import type { PageCursor } from "./record-page.ts";

/**
 * A page of records before those whose places are known. The read starts where the page before ended, where the window
 * starts, or at the start of the file. So a whole long session is read with each line read once. Null where something
 * else stands than the records of ours that must be there; then their places are to be found out.
 */
export function readForward<Payload extends ReadPayload>(
  { file, path, transcript }: HeldSession,
  cursor: PageCursor | null,
  seq: number,
  bounds: PageBounds,
  give: (seq: number, line: StoredLine) => RecordFor<Payload>,
): Page<Payload> | null {
  const from = placeOf(transcript, cursor, seq);
  if (from === null) return null;
  const { codec, owner } = transcript.options;
  // Those whose places are known were decoded a moment ago.
  const leftHere = Math.min(bounds.left, bounds.beforeSeq - seq, transcript.firstSeq - seq);
  const mostRecords = Math.min(bounds.pageRecords, leftHere);
  const records: RecordFor<Payload>[] = [];
  let byteOffset = from;
  let pageBytes = 0;
  for (const lines of file.lines(path, { from, to: transcript.endBytes })) {
    for (const line of lines) {
      if (records.length >= mostRecords || pageBytes >= bounds.pageBytes) break;
      const read = line.own();
      if (line.byteOffset === 0 && read?.envelope.seq === 0) continue;
      if (read?.envelope.seq !== seq + records.length) return null;
      const own = decodeStoredLine(read, codec, owner);
      if (own === null) return null;
      records.push(give(read.envelope.seq, own));
      pageBytes += line.sizeBytes + 1;
      byteOffset = line.byteOffset + line.sizeBytes + 1;
    }
    // What was read at once is a page, mostly: what follows would be read twice, and all of it is held together.
    if (records.length > 0) break;
  }
  if (records.length === 0) return null;
  const next = seq + records.length;
  const span = { fromSeq: seq, toSeq: next - 1 };
  return { records, span, lastSeq: transcript.head.lastSeq, cursor: { transcript, seq: next, byteOffset } };
}

/** Where the line of a record begins, as far as that is known without looking. */
function placeOf(transcript: Transcript, cursor: PageCursor | null, seq: number): number | null {
  if (cursor !== null && cursor.transcript === transcript && cursor.seq === seq) return cursor.byteOffset;
  if (seq === 1) return 0;
  const at = seq === transcript.head.windowSeq ? transcript.windowAt : undefined;
  // As the index has it, which anybody may have written.
  return at !== undefined && Number.isSafeInteger(at) ? at : null;
}
