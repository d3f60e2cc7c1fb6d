import type {
  ReadOptions,
  ReadPayload,
  RecordFor,
  RecordHead,
  SessionRecord,
  SourcedRecord,
  StoredRecord,
} from "@throughline/core";
import { createLineSplitter, decodeLine, detachEnvelope } from "@throughline/openclaw-format";
import type { AgentSessions } from "./agent-sessions.ts";
import type { HeldSession } from "./append-records.ts";
import type { SessionRow } from "./session-row.ts";
import { decodeStoredLine, type LineHead, type LinePayload } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import { foreignHead, type Transcript } from "./transcript.ts";

interface PageSpan {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface PageBounds {
  readonly afterSeq: number;
  readonly beforeSeq: number;
  readonly left: number;
  readonly step: 1 | -1;
  readonly pageRecords: number;
  readonly pageBytes: number;
}

/** A page from `seq` on, in its order; null when there are no more records. Reads no more of the file than it needs. */
export function readPage<Payload extends ReadPayload>(
  agent: AgentSessions,
  row: SessionRow,
  seq: number,
  bounds: PageBounds,
  payload: Payload,
): { readonly records: RecordFor<Payload>[]; readonly span: PageSpan; readonly lastSeq: number } | null {
  const { afterSeq, left, step, pageRecords } = bounds;
  const lowest = step === 1 ? seq : Math.max(afterSeq + 1, seq - Math.min(pageRecords, left) + 1, 1);
  const read = (held: HeldSession | null): ReturnType<typeof readPage<Payload>> => {
    if (held === null) return null;
    const span = nextSpan(held.transcript, seq, bounds);
    if (span === null) return null;
    const records = readSpan(held.file, held.transcript, span, payload);
    if (step === -1) records.reverse();
    return { records, span, lastSeq: held.transcript.head.lastSeq };
  };
  try {
    return read(agent.holdFrom(row, lowest));
  } catch (error) {
    if (!(error instanceof NeedsWholeTranscript)) throw error;
    return read(agent.hold(row, true));
  }
}

/** Which records the next page holds, or null when there are no more. Sizes are those of the lines on disk. */
function nextSpan(transcript: Transcript, seq: number, bounds: PageBounds): PageSpan | null {
  const { lastSeq } = transcript.head;
  const isWanted = (one: number): boolean =>
    one > bounds.afterSeq && one < bounds.beforeSeq && one >= 1 && one <= lastSeq;
  if (bounds.left <= 0 || !isWanted(seq)) return null;
  let last = seq;
  let bytes = lineSize(transcript, seq);
  for (
    let count = 1;
    count < Math.min(bounds.pageRecords, bounds.left) && bytes < bounds.pageBytes && isWanted(last + bounds.step);
    count++
  ) {
    last += bounds.step;
    bytes += lineSize(transcript, last);
  }
  return { fromSeq: Math.min(seq, last), toSeq: Math.max(seq, last) };
}

/** The records of a span, in ascending order, read with one read. */
function readSpan<Payload extends ReadPayload>(
  file: TranscriptFile,
  transcript: Transcript,
  { fromSeq, toSeq }: PageSpan,
  payload: Payload,
): RecordFor<Payload>[] {
  const bytes = file.readBytes(transcript.options.path, transcript.startOf(fromSeq), transcript.startOf(toSeq + 1));
  const splitter = createLineSplitter({ maxLineBytes: Number.MAX_SAFE_INTEGER });
  const lines = splitter.push(bytes);
  const rest = splitter.end();
  if (rest !== null) lines.push(rest);
  return lines.map((line, index) => readRecord(transcript, fromSeq + index, line.bytes, payload) as RecordFor<Payload>);
}

/** Where a page with these options begins. */
export function firstSeq(options: ReadOptions<ReadPayload>, lastSeq: number): number {
  return options.order === "descending"
    ? Math.min(lastSeq, (options.beforeSeq ?? Infinity) - 1)
    : Math.max(0, options.afterSeq ?? 0) + 1;
}

function readRecord(
  transcript: Transcript,
  seq: number,
  bytes: Uint8Array,
  payload: ReadPayload,
): RecordHead | StoredRecord | SourcedRecord {
  const { head, content } = readLine(transcript, seq, bytes);
  const { id, parentId, type, side, tsMs, storedAtMs, bytes: size, crc } = head;
  const plain: RecordHead = { seq, id, parentId, type, side, tsMs, storedAtMs, bytes: size, crc };
  if (payload === "head") return plain;
  const { record, source, isSourceCanonical } = content();
  return payload === "record" ? { ...plain, record } : { ...plain, record, source, isSourceCanonical };
}

/** What another program's line stands for depends on the lines before it, and those were not read. */
class NeedsWholeTranscript extends Error {}

/** One line of the file as the record it stands for. */
export function readLine(
  transcript: Transcript,
  seq: number,
  bytes: Uint8Array,
): { readonly head: LineHead; readonly content: () => LinePayload } {
  const source = decodeLine(bytes);
  const { text, envelope } = typeof source === "string" ? detachEnvelope(source) : { text: "", envelope: null };
  const { codec, owner } = transcript.options;
  const own = envelope === null || envelope.seq === 0 ? null : decodeStoredLine(text, envelope, codec, owner);
  if (own !== null) return { head: own, content: () => own.payload() };
  const meaning = transcript.meanings.get(seq);
  if (transcript.base !== null) throw new NeedsWholeTranscript();
  const record = structuredClone(meaning) ?? (JSON.parse(Buffer.from(bytes).toString()) as SessionRecord);
  return {
    head: foreignHead(record, bytes.length),
    content: () => ({ record, source, isSourceCanonical: meaning === undefined }),
  };
}

/** Lines lie without a gap behind the header. */
function lineSize(transcript: Transcript, seq: number): number {
  return transcript.startOf(seq + 1) - transcript.startOf(seq);
}
