import { createLineSplitter, decodeLine, type SplitLine } from "@throughline/openclaw-format";
import { readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { LinePiece, ownLine, type OwnLine } from "./own-line.ts";
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
