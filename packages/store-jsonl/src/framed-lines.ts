import { isUtf8 } from "node:buffer";
import { createLineSplitter, decodeLine } from "@throughline/openclaw-format";
import { readPlainEnvelope, type SplitLine } from "@throughline/openclaw-format/internal";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isSealWhole, type OwnLine, readSealedLine } from "./store-envelope.ts";
import { wholeIfOurs, type ReadBytes } from "./transcript-lines.ts";

/** A line of a transcript with its place. To be read before the lines behind its piece are asked for. */
export interface FramedLine {
  readonly byteOffset: number;
  readonly sizeBytes: number;
  /** False only for what follows the last line feed of the span. */
  readonly isTerminated: boolean;
  /** The line if it is ours; null for one of another program. */
  own(): OwnLine | null;
  /** The bytes of the line; the first only when it is over-long and another program's. */
  bytes(): Uint8Array;
}

/** Where the line after it begins, should there be one. */
export function endOf({ byteOffset, sizeBytes, isTerminated }: FramedLine): number {
  return byteOffset + sizeBytes + (isTerminated ? 1 : 0);
}

/** A part of a file. */
export interface LineSpan {
  /** Where a line begins. */
  readonly from: number;
  /** Where one ends, or the file. */
  readonly to: number;
  /** Longer lines of other programs are cut off. */
  readonly maxLineBytes?: number;
}

export interface FrameOptions extends Required<LineSpan> {
  readonly files: Files;
  readonly handle: number;
  /** For the text of an error. */
  readonly path: string;
}

const pieceBytes = 128 * 1024;
const largestPieceBytes = 1024 * 1024;
const lineFeed = 0x0a;

/**
 * The lines between two places of a file, in pieces that are read at once. A piece has 128 KiB, more if lines are
 * longer, or is one line that is longer than the largest piece.
 * @throws {ThroughlineError} STORE_IO
 */
export function* framedLines(options: FrameOptions): Generator<readonly FramedLine[], void, void> {
  const { from, to } = options;
  let buffer = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(0, to - from)));
  for (let position = from; position < to;) {
    const bytes = readInto(options, buffer, position);
    const end = bytes.lastIndexOf(lineFeed) + 1;
    if (end > 0) {
      yield linesOf(new LinePiece(bytes.subarray(0, end)), position);
      position += end;
    } else if (bytes.length === buffer.length && buffer.length < largestPieceBytes && position + bytes.length < to) {
      // Several such lines fit: otherwise what lies behind each would be read for nothing.
      buffer = Buffer.allocUnsafe(Math.min(buffer.length * 4, largestPieceBytes));
    } else {
      const line = longLine(options, position);
      if (line === null) return;
      yield [line];
      position = line.byteOffset + line.sizeBytes + 1;
    }
  }
}

/** The bytes from a place on, as many as fit; a view on the buffer. */
function readInto({ files, handle, path, to }: FrameOptions, buffer: Buffer, position: number): Buffer {
  const wanted = buffer.subarray(0, to - position);
  return wanted.subarray(
    0,
    withFileErrors(path, () => files.read(handle, wanted, position)),
  );
}

function linesOf(piece: LinePiece, byteOffset: number): readonly FramedLine[] {
  const lines: FramedLine[] = [];
  for (let from = 0; from < piece.bytes.length;) {
    const to = piece.endOf(from);
    lines.push(new LineOfPiece(piece, byteOffset, from, to));
    from = to + 1;
  }
  return lines;
}

class LineOfPiece implements FramedLine {
  readonly byteOffset: number;
  readonly sizeBytes: number;
  readonly isTerminated = true;
  readonly #piece: LinePiece;
  readonly #from: number;

  constructor(piece: LinePiece, byteOffset: number, from: number, to: number) {
    this.byteOffset = byteOffset + from;
    this.sizeBytes = to - from;
    this.#piece = piece;
    this.#from = from;
  }

  own(): OwnLine | null {
    return this.#piece.ownLine(this.#from, this.#from + this.sizeBytes);
  }

  bytes(): Uint8Array {
    return this.#piece.bytes.subarray(this.#from, this.#from + this.sizeBytes);
  }
}

/** A line that does not end where a piece does, or the last one, without its end; null when nothing is there. */
function longLine(options: FrameOptions, from: number): FramedLine | null {
  const { to, maxLineBytes } = options;
  const splitter = createLineSplitter({ byteOffset: from, maxLineBytes });
  const buffer = Buffer.allocUnsafe(Math.min(to - from, largestPieceBytes));
  for (let position = from; position < to;) {
    const bytes = readInto(options, buffer, position);
    if (bytes.length === 0) break;
    const [line] = splitter.push(bytes);
    if (line !== undefined) return framed(options, line);
    position += bytes.length;
  }
  const last = splitter.end();
  return last === null ? null : framed(options, last);
}

function framed({ files, handle, path }: FrameOptions, split: SplitLine): FramedLine {
  const read: ReadBytes = (from, to) => withFileErrors(path, () => readRange(files, handle, from, to));
  const { bytes, byteOffset, sizeBytes, isTerminated } = wholeIfOurs(read, split);
  const isWhole = bytes.length === sizeBytes;
  return { byteOffset, sizeBytes, isTerminated, own: () => (isWhole ? ownLine(bytes) : null), bytes: () => bytes };
}

/** Whether the line is a whole JSON object or array. */
export function isCompleteJson(line: FramedLine): boolean {
  const bytes = line.bytes();
  const source = bytes.length === line.sizeBytes ? decodeLine(bytes) : null;
  if (typeof source !== "string") return false;
  try {
    return typeof JSON.parse(source) === "object";
  } catch {
    return false;
  }
}

/** How most lines end, with `attachEnvelope`'s comma, and no longer than this. */
const marker = ',"_tl":';
const plainEndLength = 160;
const [openBrace, closeBrace, comma] = [0x7b, 0x7d, 0x2c];

/**
 * Lines of a transcript in bytes that begin and end with whole ones. The common envelopes are recognized by their end,
 * and the text of a line is decoded once, without its envelope. So a session is read as fast as its JSON can be parsed.
 */
export class LinePiece {
  readonly bytes: Buffer;
  /** A character for each byte from a place on, to look for what is ASCII. */
  readonly #look: string;
  readonly #lookFrom: number;
  readonly #isUtf8: boolean;

  /** `lookFrom`: before it no line ends. */
  constructor(bytes: Uint8Array, lookFrom: number = 0) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#look = this.bytes.toString("latin1", lookFrom);
    this.#lookFrom = lookFrom;
    this.#isUtf8 = isUtf8(this.bytes);
  }

  /** Where the line that begins at a place ends: at its line feed, or with the bytes. */
  endOf(from: number): number {
    const found = this.#look.indexOf("\n", from - this.#lookFrom);
    return found === -1 ? this.bytes.length : found + this.#lookFrom;
  }

  /** The line from one place to another, if a store's envelope is on it; null for a line of another program. */
  ownLine(from: number, to: number): OwnLine | null {
    return this.#plainLine(from, to) ?? readSealedLine(this.bytes.subarray(from, to));
  }

  #plainLine(from: number, to: number): OwnLine | null {
    const { bytes } = this;
    if (!this.#isUtf8 || bytes[from] !== openBrace || bytes[to - 1] !== closeBrace) return null;
    const tailFrom = Math.max(from, to - plainEndLength);
    const tail = this.#look.slice(tailFrom - this.#lookFrom, to - this.#lookFrom);
    const found = tail.lastIndexOf(marker);
    if (found < 1 || !endsMember(tail.charCodeAt(found - 1))) return null;
    const envelope = readPlainEnvelope(tail, found + marker.length, 1);
    if (envelope === null) return null;
    const at = tailFrom + found;
    try {
      // For the time of decoding, the comma before the envelope is the brace after it: joining two strings copies both.
      bytes[at] = closeBrace;
      const text = bytes.toString("utf8", from, at + 1);
      const isIntact = isSealWhole(tail, found + marker.length, envelope, () => text);
      return { text, envelope, isAscii: text.length === at + 1 - from, isIntact };
    } finally {
      bytes[at] = comma;
    }
  }
}

/** The line in the bytes if a store's envelope is on it; null for a line of another program. */
export function ownLine(bytes: Uint8Array): OwnLine | null {
  return new LinePiece(bytes, Math.max(0, bytes.length - plainEndLength)).ownLine(0, bytes.length);
}

/** An object without members has no comma, and white space before one is looked at with the whole line. */
function endsMember(code: number): boolean {
  return code !== openBrace && code !== 0x20 && code !== 0x09 && code !== 0x0d;
}
