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
import { decodeStoredLine, type LineHead, type LinePayload } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";
import { foreignHead, type Transcript } from "./transcript.ts";

export interface PageSpan {
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** Which records the next page holds, or null when there are no more. Sizes are those of the lines on disk. */
export function nextSpan(
  transcript: Transcript,
  seq: number,
  bounds: {
    readonly afterSeq: number;
    readonly beforeSeq: number;
    readonly left: number;
    readonly step: 1 | -1;
    readonly pageRecords: number;
    readonly pageBytes: number;
  },
): PageSpan | null {
  const { offsets } = transcript;
  const isWanted = (one: number): boolean =>
    one > bounds.afterSeq && one < bounds.beforeSeq && one >= 1 && one <= offsets.length;
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
export function readSpan<Payload extends ReadPayload>(
  file: TranscriptFile,
  transcript: Transcript,
  { fromSeq, toSeq }: PageSpan,
  payload: Payload,
): RecordFor<Payload>[] {
  const from = transcript.offsets[fromSeq - 1] ?? 0;
  const bytes = file.readBytes(transcript.options.path, from, endOfLine(transcript, toSeq));
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
  const record = structuredClone(meaning) ?? (JSON.parse(Buffer.from(bytes).toString()) as SessionRecord);
  return {
    head: foreignHead(record, bytes.length),
    content: () => ({ record, source, isSourceCanonical: meaning === undefined }),
  };
}

function lineSize(transcript: Transcript, seq: number): number {
  return endOfLine(transcript, seq) - (transcript.offsets[seq - 1] ?? 0);
}

/** Lines lie without a gap behind the header. */
function endOfLine({ offsets, endBytes }: Transcript, seq: number): number {
  return offsets[seq] ?? endBytes;
}
