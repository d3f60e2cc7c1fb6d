import { isUtf8 } from "node:buffer";
import { createLineSplitter, decodeLine } from "@throughline/openclaw-format";
import { readPlainEnvelope, type SplitLine } from "@throughline/openclaw-format/internal";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { isSealWhole, type OwnLine, readSealedLine } from "./store-envelope.ts";
import { wholeIfOurs, type ReadBytes } from "./transcript-lines.ts";

/**
 * Holds one line of a transcript with its position. Read it before the next chunk is requested, because chunks share a
 * buffer.
 */
export interface FramedLine {
  readonly byteOffset: number;
  readonly sizeBytes: number;
  /** Is false only for the rest behind the last line feed of the span. */
  readonly isTerminated: boolean;
  /** Returns the line with its envelope; null for a line of another program. */
  own(): OwnLine | null;
  /** Returns the bytes of the line. Only a foreign line that is too long is truncated. */
  bytes(): Uint8Array;
}

export function endOf({ byteOffset, sizeBytes, isTerminated }: FramedLine): number {
  return byteOffset + sizeBytes + (isTerminated ? 1 : 0);
}

export interface LineSpan {
  readonly from: number;
  readonly to: number;
  /** Limits the lines of other programs, in bytes; longer ones are truncated. */
  readonly maxLineBytes?: number;
}

export interface FrameOptions extends Required<LineSpan> {
  readonly files: Files;
  readonly handle: number;
  readonly path: string;
}

const pieceBytes = 128 * 1024;
const largestPieceBytes = 1024 * 1024;
const lineFeed = 0x0a;

/**
 * Yields the lines between two positions of a file, in chunks of one read each. A chunk has 128 KiB, up to 1 MiB for
 * longer lines, or is a single line that is even longer.
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
      // A larger buffer holds several such lines. Otherwise the bytes behind each line would be read twice.
      buffer = Buffer.allocUnsafe(Math.min(buffer.length * 4, largestPieceBytes));
    } else {
      const line = longLine(options, position);
      if (line === null) return;
      yield [line];
      position = line.byteOffset + line.sizeBytes + 1;
    }
  }
}

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

/**
 * Reads a line longer than the largest chunk, or the last line without a line feed. Returns null when there is no line.
 */
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

/**
 * Most lines end with an envelope. It starts with the comma of `attachEnvelope`, and has at most `plainEndLength`
 * characters.
 */
const marker = ',"_tl":';
const plainEndLength = 160;
const [openBrace, closeBrace, comma] = [0x7b, 0x7d, 0x2c];

/**
 * Reads lines of a transcript from bytes that hold complete lines. It recognizes common envelopes by their end, and
 * decodes a line's text once, without the envelope. Reading a session is then as fast as parsing its JSON.
 */
export class LinePiece {
  readonly bytes: Buffer;
  /** Has one character per byte from `#lookFrom` on, because a string search is faster than a search in bytes. */
  readonly #look: string;
  readonly #lookFrom: number;
  readonly #isUtf8: boolean;

  /** `lookFrom` is a position before which no line ends, so that those bytes need no search. */
  constructor(bytes: Uint8Array, lookFrom: number = 0) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#look = this.bytes.toString("latin1", lookFrom);
    this.#lookFrom = lookFrom;
    this.#isUtf8 = isUtf8(this.bytes);
  }

  endOf(from: number): number {
    const found = this.#look.indexOf("\n", from - this.#lookFrom);
    return found === -1 ? this.bytes.length : found + this.#lookFrom;
  }

  /** Returns null for a line of another program. */
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
      // The comma before the envelope is replaced by the closing brace while the text is decoded. Concatenating the
      // brace would copy the string.
      bytes[at] = closeBrace;
      const text = bytes.toString("utf8", from, at + 1);
      const isIntact = isSealWhole(tail, found + marker.length, envelope, () => text);
      return { text, envelope, isAscii: text.length === at + 1 - from, isIntact };
    } finally {
      bytes[at] = comma;
    }
  }
}

export function ownLine(bytes: Uint8Array): OwnLine | null {
  return new LinePiece(bytes, Math.max(0, bytes.length - plainEndLength)).ownLine(0, bytes.length);
}

/**
 * Rejects an object without members, which has no comma, and white space before the comma, because the complete parser
 * handles both.
 */
function endsMember(code: number): boolean {
  return code !== openBrace && code !== 0x20 && code !== 0x09 && code !== 0x0d;
}
