import type { ReadOptions, StoredRecord } from "@throughline/core";
import type { ReadPayload, RecordFor, RecordHead, SourcedRecord } from "@throughline/core/internal";
import { checkedPage } from "@throughline/store-kit/internal";
import { serializeRecord } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import type { SessionRow } from "./session-row.ts";
import { decodeStoredLine, foreignHead, outlineOf, type ReadLine, type StoredLine } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import { isLongLineOurs } from "./transcript-lines.ts";
import type { Transcript } from "./transcript.ts";
import { assertNotOurs, damagedLine, readFramed, NeedsWholeTranscript } from "./read-line.ts";

const lineFeed = 0x0a;

interface PageSpan {
  readonly fromSeq: number;
  readonly toSeq: number;
}

interface PageBounds {
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly left: number;
  readonly step: 1 | -1;
  readonly pageRecords: number;
  readonly pageBytes: number;
}

export interface Page<Payload extends ReadPayload> {
  readonly records: RecordFor<Payload>[];
  readonly span: PageSpan;
  readonly lastSeq: number;
  readonly cursor: PageCursor | null;
}

/** Holds the start of a record's line, which was found by reading the line before it. */
export interface PageCursor {
  readonly transcript: Transcript;
  readonly seq: number;
  readonly byteOffset: number;
}

/**
 * Reads a page from `seq` on, in the order of the read; returns null when there are no more records. It reads no more
 * of the file than necessary. `cursor` comes from the page before.
 * @throws {ThroughlineError} STORE_CORRUPT when the page's records are not those that must follow
 */
export function readPage<Payload extends ReadPayload>(
  agent: AgentSessionFiles,
  row: SessionRow,
  seq: number,
  bounds: PageBounds,
  payload: Payload,
  cursor: PageCursor | null,
): Page<Payload> | null {
  const page = pageFrom(agent, row, seq, bounds, payload, cursor);
  const { afterSeq, beforeSeq, left, step } = bounds;
  if (page === null) return null;
  return step === 1
    ? checkedPage(page, { afterSeq: Math.max(afterSeq, seq - 1), beforeSeq, left, order: "ascending" })
    : checkedPage(page, { afterSeq, beforeSeq: Math.min(beforeSeq, seq + 1), left, order: "descending" });
}

function pageFrom<Payload extends ReadPayload>(
  agent: AgentSessionFiles,
  row: SessionRow,
  seq: number,
  bounds: PageBounds,
  payload: Payload,
  cursor: PageCursor | null,
): Page<Payload> | null {
  const { afterSeq, beforeSeq, left, step, pageRecords } = bounds;
  const lowest = step === 1 ? seq : Math.max(afterSeq + 1, seq - Math.min(pageRecords, left) + 1, 1);
  const read = (held: OpenTranscript | null): Page<Payload> | null => {
    if (held === null) return null;
    const span = nextSpan(held.transcript, seq, bounds);
    if (span === null) return null;
    const records = readSpan(held, span, payload);
    if (step === -1) records.reverse();
    return { records, span, lastSeq: held.transcript.head.lastSeq, cursor: null };
  };
  const far = step === 1 && left > 0 && seq < beforeSeq ? agent.open(row) : null;
  if (far !== null && seq < far.transcript.firstSeq) {
    const page = readForward<Payload>(far, cursor, seq, bounds, (at, own) => recordOf(at, own, payload));
    if (page !== null) return page;
  }
  try {
    const held = agent.open(row);
    return read(held === null || held.file.reach(lowest) ? held : agent.open(row, true));
  } catch (error) {
    if (!(error instanceof NeedsWholeTranscript)) throw error;
    return read(agent.open(row, true));
  }
}

/**
 * Reads a page of records before those whose positions are loaded. It starts at the end of the page before, at the
 * window, or at the start of the file. A whole long session is thus read with each line read once. Returns null when
 * other lines are found than expected. Their positions must then be searched.
 */
function readForward<Payload extends ReadPayload>(
  { file, path, transcript }: OpenTranscript,
  cursor: PageCursor | null,
  seq: number,
  bounds: PageBounds,
  give: (seq: number, line: StoredLine) => RecordFor<Payload>,
): Page<Payload> | null {
  const from = placeOf(transcript, cursor, seq);
  if (from === null) return null;
  const { codec, owner } = transcript.options;
  // Records with loaded positions are read by `readSpan`, because they were decoded shortly before.
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
      if (read?.envelope.seq !== seq + records.length || !read.isIntact) return null;
      const own = decodeStoredLine(read, codec, owner);
      if (own === null || isEdited(own)) return null;
      records.push(give(read.envelope.seq, own));
      pageBytes += line.sizeBytes + 1;
      byteOffset = line.byteOffset + line.sizeBytes + 1;
    }
    // One chunk is usually one page. More records would have to be held in memory, and the rest of the next chunk read
    // twice.
    if (records.length > 0) break;
  }
  if (records.length === 0) return null;
  const next = seq + records.length;
  const span = { fromSeq: seq, toSeq: next - 1 };
  return { records, span, lastSeq: transcript.head.lastSeq, cursor: { transcript, seq: next, byteOffset } };
}

function placeOf(transcript: Transcript, cursor: PageCursor | null, seq: number): number | null {
  if (cursor !== null && cursor.transcript === transcript && cursor.seq === seq) return cursor.byteOffset;
  if (seq === 1) return 0;
  const at = seq === transcript.head.windowSeq ? transcript.windowAt : undefined;
  // The position comes from the index, a file that may hold anything, so it is checked.
  return at !== undefined && Number.isSafeInteger(at) ? at : null;
}

function nextSpan(transcript: Transcript, seq: number, bounds: PageBounds): PageSpan | null {
  const { afterSeq, beforeSeq, left, step, pageRecords, pageBytes } = bounds;
  const lowest = Math.max(afterSeq + 1, 1);
  const highest = Math.min(beforeSeq - 1, transcript.head.lastSeq);
  if (left <= 0 || seq < lowest || seq > highest) return null;
  const count = Math.min(pageRecords, left);
  // Lines follow each other without gaps, so the difference of two starts is the size of the lines between them.
  const beginning = transcript.startOf(step === 1 ? seq : seq + 1);
  const furthest = step === 1 ? Math.min(seq + count - 1, highest) : Math.max(seq - count + 1, lowest);
  let last = seq;
  while (last !== furthest && Math.abs(transcript.startOf(step === 1 ? last + 1 : last) - beginning) < pageBytes)
    last += step;
  return { fromSeq: Math.min(seq, last), toSeq: Math.max(seq, last) };
}

/**
 * Reads the records of a span in ascending order. Recently decoded lines are reused, and the rest is read at once,
 * except for long lines.
 */
function readSpan<Payload extends ReadPayload>(
  { file, transcript }: OpenTranscript,
  { fromSeq, toSeq }: PageSpan,
  payload: Payload,
): RecordFor<Payload>[] {
  const records: RecordFor<Payload>[] = [];
  for (let seq = fromSeq; seq <= toSeq; seq++) {
    const own = transcript.options.warm.take(transcript, seq);
    if (own === null) break;
    records.push(lineRecord(transcript, seq, own, payload));
  }
  for (let seq = fromSeq + records.length; seq <= toSeq;) {
    const long = isLong(transcript, seq) ? readLong(file, transcript, seq) : null;
    if (long !== null) {
      records.push(lineRecord(transcript, seq++, long, payload));
      continue;
    }
    const end = behindShort(transcript, seq, toSeq);
    // Overlong lines were handled above, so no limit applies here.
    const span = { from: transcript.startOf(seq), to: transcript.startOf(end), maxLineBytes: Infinity };
    for (const lines of file.lines(transcript.options.path, span))
      for (const line of lines) {
        const read = readFramed(transcript, seq, line);
        // A line without a line feed is where the file was truncated; a finding reports that.
        if (payload === "source" && read.actualCrc === undefined && line.isTerminated) assertNotOurs(seq, line);
        records.push(lineRecord(transcript, seq++, read, payload));
      }
  }
  return records;
}

/**
 * Returns the seq behind the lines up to `toSeq` that precede the next long line. The first line counts as short,
 * because `readLong` has accepted it.
 */
function behindShort(transcript: Transcript, seq: number, toSeq: number): number {
  const { maxLineBytes } = transcript.options;
  // If all lines together are within the limit, none of them is long.
  if (transcript.startOf(toSeq + 1) - transcript.startOf(seq) <= maxLineBytes) return toSeq + 1;
  let end = seq + 1;
  while (end <= toSeq && !isLong(transcript, end)) end++;
  return end;
}

function isLong(transcript: Transcript, seq: number): boolean {
  return lineSize(transcript, seq) > transcript.options.maxLineBytes;
}

/**
 * Reads a record whose line exceeds the limit for other programs. Another program's line of this length becomes a
 * placeholder record, and the rest of it is not read. Returns null for a line of this store, which is read normally.
 */
function readLong(file: TranscriptFile, transcript: Transcript, seq: number): ReadLine | null {
  const { path } = transcript.options;
  const [from, next] = [transcript.startOf(seq), transcript.startOf(seq + 1)];
  const isTerminated = file.readBytes(path, next - 1, next)[0] === lineFeed;
  const sizeBytes = next - from - (isTerminated ? 1 : 0);
  const meaning = transcript.meanings.get(seq);
  if (meaning !== undefined && transcript.overlong.has(seq)) {
    const record = structuredClone(meaning);
    return {
      ...foreignHead(record, sizeBytes),
      payload: () => ({ record, source: serializeRecord(record), isSourceCanonical: true }),
      outline: () => outlineOf(record),
    };
  }
  // In a transcript that was loaded from its end, this line was not yet tested for being the store's own.
  if (transcript.base !== null && !isLongLineOurs((at, to) => file.readBytes(path, at, to), from, from + sizeBytes))
    throw new NeedsWholeTranscript();
  return null;
}

/** Wraps a page, because null has two meanings: here it means that the read has reached its end. */
export interface HeldPage<Payload extends ReadPayload> {
  readonly page: Page<Payload> | null;
}

/**
 * Does the same as `readPage`. With 0 as `seq` it starts at the first record of the options. Returns null when the
 * transcript is gone.
 */
export function holdPage<Payload extends ReadPayload>(
  agent: AgentSessionFiles,
  row: SessionRow,
  seq: number,
  bounds: PageBounds & Required<Pick<ReadOptions, "order">>,
  payload: Payload,
  cursor: PageCursor | null,
): HeldPage<Payload> | null {
  const held = agent.open(row);
  if (held === null) return null;
  const from = seq === 0 ? firstSeq(bounds, held.transcript.head.lastSeq) : seq;
  return { page: readPage(agent, row, from, bounds, payload, cursor) };
}

function firstSeq(
  { order, afterSeq, beforeSeq }: Pick<PageBounds, "afterSeq" | "beforeSeq"> & Required<Pick<ReadOptions, "order">>,
  lastSeq: number,
): number {
  return order === "descending" ? Math.min(lastSeq, beforeSeq - 1) : afterSeq + 1;
}

function isEdited(line: ReadLine): boolean {
  return line.crc !== null && line.actualCrc !== undefined && line.crc !== line.actualCrc();
}

/**
 * Builds the record of a line. An edited line is read as it is, because people edit transcripts, and a finding reports
 * it. A request for the exact source, as for a copy or export, is refused.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
function lineRecord<Payload extends ReadPayload>(
  { base, options }: Transcript,
  seq: number,
  line: ReadLine,
  payload: Payload,
): RecordFor<Payload> {
  if (isEdited(line)) {
    if (payload === "source") throw damagedLine(seq, { id: line.id, path: options.path });
    // The finding about this line needs its number, which only a read of the whole transcript has.
    if (base !== null) throw new NeedsWholeTranscript();
  }
  return recordOf(seq, line, payload);
}

function recordOf<Payload extends ReadPayload>(seq: number, line: ReadLine, payload: Payload): RecordFor<Payload> {
  const { id, parentId, type, side, tsMs, storedAtMs, bytes, crc } = line;
  const given = (): RecordHead | StoredRecord | SourcedRecord => {
    if (payload === "head") {
      const { role, toolName } = line.outline();
      return { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role, toolName };
    }
    const { record, source, isSourceCanonical } = line.payload();
    return payload === "record"
      ? { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, record }
      : { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, record, source, isSourceCanonical };
  };
  return given() as RecordFor<Payload>;
}

/** Lines follow each other without gaps, so the difference of their starts is the size. */
function lineSize(transcript: Transcript, seq: number): number {
  return transcript.startOf(seq + 1) - transcript.startOf(seq);
}
