import { crc32 } from "node:zlib";
import type { SessionHead } from "@throughline/core";
import { type EndAnchor, hasAnchor, readAnchor } from "./end-anchor.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { framedLines } from "./framed-lines.ts";
import { readSealedLine, type StoreEnvelope, type TranscriptBase, type WindowMark } from "./store-envelope.ts";
import { createSlices } from "./slices.ts";
import type { LineCodec, LineOwner } from "./stored-line.ts";
import { isLongLineOurs } from "./transcript-lines.ts";
import { Transcript } from "./transcript.ts";
import type { WarmLines } from "./warm-lines.ts";

export interface TranscriptReading {
  readonly files: Files;
  readonly codec: LineCodec;
  readonly nowMs: () => number;
  readonly warm: WarmLines;
  /** Limits the lines of other programs, in bytes. Longer ones are kept but not read. */
  readonly maxLineBytes: number;
}

export interface TranscriptRequest {
  readonly path: string;
  readonly owner: LineOwner;
  readonly savedHead: SessionHead | null;
  /** Entry patches up to this revision are in the row. Later ones must be read from the transcript. */
  readonly revision: number;
  readonly indexed?: (facts: FileFacts) => Omit<TranscriptBase, "endBytes"> | null;
  /** Reads every record, even if a mark near the end would do. @default false */
  readonly isWhole?: boolean;
  /** Returns the last seq that is proven as acknowledged for the file with this identity. @default 0 */
  readonly acknowledgedSeq?: (identity: string) => number;
}

/** Remembers which records of a file this process has read. A later image that lacks them shows a loss. */
export class AcknowledgedRecords {
  #identity = "";
  #seq = 0;

  /**
   * Call it before the image is rebuilt. The returned function computes the last acknowledged seq on demand, because
   * that may query the index.
   */
  before(identity: string, image: Transcript | null, look: TranscriptRequest): () => number {
    if (identity !== this.#identity) this.#seq = 0;
    this.#identity = identity;
    this.#seq = Math.max(this.#seq, image?.head.lastSeq ?? 0);
    return () => Math.max(this.#seq, look.acknowledgedSeq?.(identity) ?? 0);
  }
}

export interface TailScan {
  readonly files: Files;
  readonly handle: number;
  readonly sizeBytes: number;
}

/** Smaller transcripts are read completely, which takes no longer and needs no later search. */
const minTailBytes: number = 256 * 1024;

const firstChunkBytes = 256 * 1024;
const maxChunkBytes = 8 * 1024 * 1024;
/** Limits the backward search for a mark. Reading a window of this length takes as long as reading the rest. */
const maxSearchBytes = 64 * 1024 * 1024;
/** A longer line is first checked for an envelope of this store, so that a foreign one is not read. */
const longBytes = 16 * 1024 * 1024;
const markText = Buffer.from('"mark":{');
const lineFeed = 0x0a;

/**
 * Returns the state to start reading from: the index's, or that of the newest mark. Null means the start of the file.
 */
export function findBase(scan: TailScan, facts: FileFacts, look: TranscriptRequest): TranscriptBase | null {
  if (look.isWhole === true || facts.sizeBytes < minTailBytes) return null;
  const indexed = look.indexed?.(facts) ?? null;
  const base = (indexed === null ? null : checkIndexed(scan, indexed)) ?? findMark(scan, look.owner.sessionId);
  return base === null || base.revision > look.revision ? null : base;
}

function findMark(scan: TailScan, sessionId: string): TranscriptBase | null {
  const { files, handle, sizeBytes } = scan;
  let bytes: Uint8Array = new Uint8Array(0);
  // The position of the last mark whose line starts before the bytes read so far.
  let openAt = 0;
  for (let chunk = firstChunkBytes, from = sizeBytes; from > 0 && sizeBytes - from < maxSearchBytes; chunk *= 2) {
    const before = Math.max(0, from - chunk);
    const added = readRange(files, handle, before, from);
    // A mark may cross the border of two reads, so the search starts slightly behind it.
    bytes = Buffer.concat([added, bytes]);
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = view.lastIndexOf(markText, added.length + Math.max(markText.length, openAt));
    // One match per line is enough: a line has one envelope, and another program's line may contain many fakes.
    while (at !== -1) {
      const start = at === 0 ? -1 : view.lastIndexOf(lineFeed, at - 1);
      openAt = start === -1 ? at : 0;
      if (start === -1) break;
      const end = view.indexOf(lineFeed, at);
      const base = end === -1 ? null : baseOf(view.subarray(start + 1, end), sessionId, before + end + 1);
      if (base !== null) return base;
      at = start === 0 ? -1 : view.lastIndexOf(markText, start - 1);
    }
    from = before;
  }
  return null;
}

/** Returns the index's state only if the file still ends with the last record that the index has. */
function checkIndexed(scan: TailScan, known: Omit<TranscriptBase, "endBytes">): TranscriptBase | null {
  const { files, handle, sizeBytes } = scan;
  const bytes = readRange(files, handle, Math.max(0, sizeBytes - firstChunkBytes), sizeBytes);
  if (bytes.at(-1) !== lineFeed) return null;
  const start = bytes.lastIndexOf(lineFeed, bytes.length - 2);
  const envelope = start === -1 ? null : envelopeOf(bytes.subarray(start + 1, -1));
  const [index, count] = envelope?.batch ?? [1, 1];
  return envelope?.seq === known.head.lastSeq && index === count ? { ...known, endBytes: sizeBytes } : null;
}

/** Loads the positions of the records from `seq` on. Returns false when that needs the whole file. */
export function reachBack(files: Files, handle: number, image: Transcript, seq: number): boolean {
  const { firstSeq, endBytes } = image;
  const scan = { files, handle, sizeBytes: endBytes };
  const starts = lineStartsBefore(scan, image.startOf(firstSeq), firstSeq, firstSeq - seq);
  if (starts !== null) image.addEarlier(starts);
  return starts !== null;
}

/**
 * Returns the starts of the lines before `beforeBytes`, whose record has the seq `beforeSeq`. Returns null when the
 * first of them is not a line of this store with the expected seq.
 */
function lineStartsBefore(
  { files, handle }: TailScan,
  beforeBytes: number,
  beforeSeq: number,
  count: number,
): readonly number[] | null {
  const starts: number[] = [];
  let from = beforeBytes;
  for (let chunk = firstChunkBytes; from > 0 && starts.length < count; chunk = Math.min(chunk * 2, maxChunkBytes)) {
    const before = Math.max(0, from - chunk);
    const bytes = readRange(files, handle, before, from);
    // The line feed at the very end belongs to the last wanted line, so the search starts before it.
    let at = from === beforeBytes ? bytes.length - 1 : bytes.length;
    while (starts.length < count && at > 0) {
      at = bytes.lastIndexOf(lineFeed, at - 1);
      if (at !== -1) starts.push(before + at + 1);
      else break;
    }
    from = before;
  }
  const first = starts.at(-1);
  if (starts.length < count || first === undefined) return null;
  const end = starts.at(-2) ?? beforeBytes;
  const read = (at: number, to: number): Uint8Array => readRange(files, handle, at, to);
  if (end - first > longBytes && !isLongLineOurs(read, first, end - 1)) return null;
  const line = read(first, end);
  return envelopeOf(line.subarray(0, -1))?.seq === beforeSeq - count ? starts.toReversed() : null;
}

function envelopeOf(line: Uint8Array): StoreEnvelope | null {
  const read = readSealedLine(line);
  return read?.isIntact === true ? read.envelope : null;
}

function baseOf(line: Uint8Array, sessionId: string, endBytes: number): TranscriptBase | null {
  const read = readSealedLine(line);
  if (read === null || !read.isIntact) return null;
  const { envelope, text } = read;
  if (!isMark(envelope.mark) || envelope.window === undefined) return null;
  const isCoded = envelope.enc !== undefined;
  if (!isCoded && envelope.crc !== crc32(text)) return null;
  const { messages, head: headId, fence, turn, updated, revision } = envelope.mark;
  const head = { sessionId, lastSeq: envelope.seq, headId, windowSeq: envelope.window, fence, turn };
  return { head, messageCount: messages, updatedAtMs: updated, revision, endBytes };
}

function isMark(value: unknown): value is WindowMark {
  if (typeof value !== "object" || value === null) return false;
  const { messages, head, fence, turn, updated, revision } = value as Record<string, unknown>;
  return (
    [messages, fence, updated, revision].every((one) => typeof one === "number") &&
    (head === null || typeof head === "string") &&
    typeof turn === "object"
  );
}

/** Holds an image that was read without a lock. The session's current image is not touched meanwhile. */
export interface ReadAside {
  readonly facts: FileFacts;
  readonly transcript: Transcript;
  readonly anchor: EndAnchor;
}

/** Smaller files are read where they are needed, because that does not block other work noticeably. */
export const minAsideBytes: number = 4 * 1024 * 1024;

/**
 * Reads a transcript in slices without a lock, because a read of several seconds must neither hold a lock nor block the
 * process. Returns null when the file does not exist.
 * @throws {ThroughlineError} STORE_IO, PATH_UNSAFE
 */
export async function readAside(options: TranscriptReading, look: TranscriptRequest): Promise<ReadAside | null> {
  const { files } = options;
  const handle = openIfThere(files, look.path);
  if (handle === null) return null;
  try {
    const facts = withFileErrors(look.path, () => files.factsOf(handle));
    const end = readAnchor(files, handle, facts.sizeBytes, facts);
    const base = findBase({ files, handle, sizeBytes: facts.sizeBytes }, facts, look);
    const file = { handle, facts };
    const transcript =
      (await readFrom(base, false, file, options, look)) ?? (await readFrom(null, true, file, options, look));
    // A failed write may have been undone meanwhile and replaced by another. The image could then combine halves of two
    // lines.
    const isStill = withFileErrors(look.path, () => hasAnchor(end, files, handle));
    if (transcript === null || !isStill) return null;
    return { facts, transcript, anchor: readAnchor(files, handle, transcript.endBytes, facts) };
  } finally {
    files.close(handle);
  }
}

/** Returns null when the read must expect lines of other programs. */
async function readFrom(
  base: TranscriptBase | null,
  isMixed: boolean,
  { handle, facts }: { readonly handle: number; readonly facts: FileFacts },
  { files, codec, nowMs, warm, maxLineBytes }: TranscriptReading,
  { path, owner, savedHead, acknowledgedSeq: askSeq }: TranscriptRequest,
): Promise<Transcript | null> {
  const acknowledgedSeq = (): number => askSeq?.(facts.identity) ?? 0;
  const options = { owner, codec, path, warm, nowMs, maxLineBytes, isMixed, acknowledgedSeq };
  const transcript = new Transcript(options, savedHead, base);
  const span = { from: transcript.endBytes, to: facts.sizeBytes, maxLineBytes };
  const slices = createSlices();
  transcript.beginScan();
  for (const lines of framedLines({ files, handle, path, ...span })) {
    if (!transcript.feed(lines)) return null;
    await slices.next();
  }
  transcript.finishScan(() => files.factsOf(handle).sizeBytes > facts.sizeBytes);
  return transcript;
}
