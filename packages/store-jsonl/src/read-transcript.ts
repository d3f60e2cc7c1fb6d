import { crc32 } from "node:zlib";
import type { SessionHead } from "@throughline/core";
import { EndAnchor } from "./end-anchor.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { framedLines } from "./framed-lines.ts";
import { readSealedLine, type StoreEnvelope, type TranscriptBase, type WindowMark } from "./store-envelope.ts";
import { createSlices } from "./slices.ts";
import type { LineCodec, LineOwner } from "./stored-line.ts";
import { isLongLineOurs } from "./transcript-lines.ts";
import { Transcript } from "./transcript.ts";
import type { WarmLines } from "./warm-lines.ts";

/** What reading a transcript needs, whichever it is. */
export interface TranscriptReading {
  readonly files: Files;
  readonly codec: LineCodec;
  readonly nowMs: () => number;
  /** The lines decoded last, of whichever of those files it was. */
  readonly warm: WarmLines;
  /** Longer lines of other programs are kept and not read. */
  readonly maxLineBytes: number;
}

/** Which session's transcript is looked at, and how much of it is wanted. */
export interface TranscriptLook {
  readonly path: string;
  readonly owner: LineOwner;
  readonly savedHead: SessionHead | null;
  /** Changes of the entry up to this revision are known; those behind it must be read. */
  readonly revision: number;
  /** What the index knows of the file, should it be what it was then. */
  readonly indexed?: (facts: FileFacts) => Omit<TranscriptBase, "endBytes"> | null;
  /** Every record, also where a mark near the end would do. @default false */
  readonly isWhole?: boolean;
  /** Up to which seq records of the file with this identity are known to have been acknowledged. @default 0 */
  readonly acknowledgedSeq?: (identity: string) => number;
}

/** Which records of a file this process has seen whole, from image to image of it. */
export class AcknowledgedRecords {
  #identity = "";
  #seq = 0;

  /** Up to which seq records are known to have been acknowledged, before the image of the file is built again. */
  before(identity: string, image: Transcript | null, look: TranscriptLook): () => number {
    if (identity !== this.#identity) this.#seq = 0;
    this.#identity = identity;
    this.#seq = Math.max(this.#seq, image?.head.lastSeq ?? 0);
    return () => Math.max(this.#seq, look.acknowledgedSeq?.(identity) ?? 0);
  }
}

/** A file that is open, as long as it was when it was looked at. */
export interface TailScan {
  readonly files: Files;
  readonly handle: number;
  readonly sizeBytes: number;
}

/** Smaller transcripts are read as a whole: that takes no longer, and leaves no question open. */
const minTailBytes: number = 256 * 1024;

const firstChunkBytes = 256 * 1024;
const maxChunkBytes = 8 * 1024 * 1024;
/** So far back a mark is looked for; a window that long takes as long to read as the rest. */
const maxSearchBytes = 64 * 1024 * 1024;
/** Before a longer line is read as a whole it is looked at whether it is ours. */
const longBytes = 16 * 1024 * 1024;
const markText = Buffer.from('"mark":{');
const lineFeed = 0x0a;

/** From where on a file is read: from what the index knows, or the newest mark; null for its beginning. */
export function findBase(scan: TailScan, facts: FileFacts, look: TranscriptLook): TranscriptBase | null {
  if (look.isWhole === true || facts.sizeBytes < minTailBytes) return null;
  const indexed = look.indexed?.(facts) ?? null;
  const base = (indexed === null ? null : checkIndexed(scan, indexed)) ?? findMark(scan, look.owner.sessionId);
  return base === null || base.revision > look.revision ? null : base;
}

/** The newest mark of the file, found from its end; null when there is none within reach. */
function findMark(scan: TailScan, sessionId: string): TranscriptBase | null {
  const { files, handle, sizeBytes } = scan;
  let bytes: Uint8Array = new Uint8Array(0);
  // The last mark in what was read, where the line it is in begins before that.
  let openAt = 0;
  for (let chunk = firstChunkBytes, from = sizeBytes; from > 0 && sizeBytes - from < maxSearchBytes; chunk *= 2) {
    const before = Math.max(0, from - chunk);
    const added = readRange(files, handle, before, from);
    // A mark is short: what lies across the border of two reads is found with a little of the one before.
    bytes = Buffer.concat([added, bytes]);
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = view.lastIndexOf(markText, added.length + Math.max(markText.length, openAt));
    // One mark of each line is enough: a line has one envelope, and another program's may hold as many as it likes.
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

/** What the index knows, if the file ends with the record that it knows as the last. */
function checkIndexed(scan: TailScan, known: Omit<TranscriptBase, "endBytes">): TranscriptBase | null {
  const { files, handle, sizeBytes } = scan;
  const bytes = readRange(files, handle, Math.max(0, sizeBytes - firstChunkBytes), sizeBytes);
  if (bytes.at(-1) !== lineFeed) return null;
  const start = bytes.lastIndexOf(lineFeed, bytes.length - 2);
  const envelope = start === -1 ? null : envelopeOf(bytes.subarray(start + 1, -1));
  const [index, count] = envelope?.batch ?? [1, 1];
  return envelope?.seq === known.head.lastSeq && index === count ? { ...known, endBytes: sizeBytes } : null;
}

/** Makes the places of the records from `seq` on known to an image. False when that takes the whole file. */
export function reachBack(files: Files, handle: number, image: Transcript, seq: number): boolean {
  const { firstSeq, endBytes } = image;
  const scan = { files, handle, sizeBytes: endBytes };
  const starts = lineStartsBefore(scan, image.startOf(firstSeq), firstSeq, firstSeq - seq);
  if (starts !== null) image.addEarlier(starts);
  return starts !== null;
}

/**
 * Where the lines of earlier records start, up to the one at `beforeBytes`, whose seq is `beforeSeq`. Null when the
 * first of them is no line of ours with the seq it must have.
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
    // The line feed at the very end ends the last of the lines that are wanted.
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

/** An image of a transcript that was made beside the one its session is known by. */
export interface ReadAside {
  readonly facts: FileFacts;
  readonly transcript: Transcript;
  readonly anchor: EndAnchor;
}

/** A shorter file is read where it is wanted: that holds nobody up. */
export const minAsideBytes: number = 4 * 1024 * 1024;

/**
 * Reads a transcript with nothing locked, in slices: what takes seconds must not be read while a session is held, nor in
 * one go. Null when there is no such file.
 * @throws {ThroughlineError} STORE_IO, PATH_UNSAFE
 */
export async function readAside(options: TranscriptReading, look: TranscriptLook): Promise<ReadAside | null> {
  const { files } = options;
  const handle = openIfThere(files, look.path);
  if (handle === null) return null;
  try {
    const facts = withFileErrors(look.path, () => files.factsOf(handle));
    const end = EndAnchor.read(files, handle, facts.sizeBytes, facts);
    const base = findBase({ files, handle, sizeBytes: facts.sizeBytes }, facts, look);
    const file = { handle, facts };
    const transcript =
      (await readFrom(base, false, file, options, look)) ?? (await readFrom(null, true, file, options, look));
    // A write that failed was taken back meanwhile, and another may be in its place: of some line each half was read.
    const isStill = withFileErrors(look.path, () => end.isThere(files, handle));
    if (transcript === null || !isStill) return null;
    return { facts, transcript, anchor: EndAnchor.read(files, handle, transcript.endBytes, facts) };
  } finally {
    files.close(handle);
  }
}

/** Null when it must be read with other programs in mind. */
async function readFrom(
  base: TranscriptBase | null,
  isMixed: boolean,
  { handle, facts }: { readonly handle: number; readonly facts: FileFacts },
  { files, codec, nowMs, warm, maxLineBytes }: TranscriptReading,
  { path, owner, savedHead, acknowledgedSeq: askSeq }: TranscriptLook,
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
