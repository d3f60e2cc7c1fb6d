import { Buffer } from "node:buffer";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { OpenedFile } from "./workspace-folder.ts";
import { assertNotAborted } from "./workspace-tool.ts";

export interface LineRange {
  /** Counts lines from 1. */
  readonly offset: number;
  readonly limit: number;
  readonly mostBytes: number;
}

/** Holds lines as the file stores them, including their line ends. */
export interface ReadLines {
  readonly text: string;
  readonly lineCount: number;
  /** Is true when the file ends with these lines. */
  readonly isAtEnd: boolean;
  /** Counts the bytes of the last line that were left out. Greater than 0 only when a single line exceeds the limit. */
  readonly cutBytes: number;
  /** Is true when bytes that are not UTF-8 were replaced by U+FFFD. */
  readonly isLossy: boolean;
}

const chunkBytes = 65_536;
const newline = 0x0a;

/**
 * Reads a range of lines in chunks, so that a large file does not fill the memory.
 * @throws {WorkspaceToolRefusal} for a file that is no text
 */
export async function readLines(
  file: OpenedFile,
  path: string,
  range: LineRange,
  signal: AbortSignal,
): Promise<ReadLines> {
  const taken = new LineTaker(range);
  let isFirst = true;
  for (;;) {
    assertNotAborted(signal);
    const buffer = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await file.handle.read(buffer, 0, chunkBytes, null);
    if (bytesRead === 0) return taken.finish(true);
    const chunk = buffer.subarray(0, bytesRead);
    if (isFirst) assertText(chunk, path, file.sizeBytes);
    isFirst = false;
    if (taken.take(chunk)) return taken.finish(false);
  }
}

/** A text contains no NUL byte, and nearly every binary file has one near its beginning. */
export function assertText(bytes: Buffer, path: string, sizeBytes: number): void {
  if (!bytes.subarray(0, 8192).includes(0)) return;
  throw new WorkspaceToolRefusal(
    "binary",
    `${quoted(path)} is no text: a binary file of ${sizeBytes} bytes. It was not read.`,
  );
}

/** Collects the bytes of a line range from chunks, whose borders may split a line. */
class LineTaker {
  readonly #range: LineRange;
  readonly #pieces: Buffer[] = [];
  #line = 1;
  #bytes = 0;
  /** Counts the complete lines, and the bytes up to the end of the last one. */
  #complete = { lines: 0, bytes: 0 };

  constructor(range: LineRange) {
    this.#range = range;
  }

  /** Returns true when no further chunk is needed. */
  take(chunk: Buffer): boolean {
    const { offset, limit, mostBytes } = this.#range;
    let start = 0;
    while (start < chunk.length) {
      if (this.#complete.lines === limit || this.#bytes > mostBytes) return true;
      const found = chunk.indexOf(newline, start);
      const end = found < 0 ? chunk.length : found + 1;
      if (this.#line >= offset) {
        // One byte more than the limit is collected. It shows that content was left out.
        const piece = chunk.subarray(start, Math.min(end, start + mostBytes + 1 - this.#bytes));
        this.#pieces.push(piece);
        this.#bytes += piece.length;
        if (found >= 0 && this.#bytes <= mostBytes) {
          this.#complete = { lines: this.#complete.lines + 1, bytes: this.#bytes };
        }
      }
      if (found >= 0) this.#line += 1;
      start = end;
    }
    return this.#bytes > mostBytes;
  }

  finish(isEndOfFile: boolean): ReadLines {
    const all = Buffer.concat(this.#pieces);
    const { mostBytes } = this.#range;
    const isOver = all.length > mostBytes;
    if (!isOver) {
      const isLastWhole = all.length === this.#complete.bytes;
      const lineCount = this.#complete.lines + (isLastWhole ? 0 : 1);
      return { ...decoded(all), lineCount, isAtEnd: isEndOfFile, cutBytes: 0 };
    }
    if (this.#complete.lines > 0) {
      const whole = all.subarray(0, this.#complete.bytes);
      return { ...decoded(whole), lineCount: this.#complete.lines, isAtEnd: false, cutBytes: 0 };
    }
    const part = all.subarray(0, atCharacter(all, mostBytes));
    return { ...decoded(part), lineCount: 1, isAtEnd: false, cutBytes: all.length - part.length };
  }
}

/** A cut inside a UTF-8 sequence would give a broken character, so the cut moves to the start of the sequence. */
function atCharacter(bytes: Buffer, place: number): number {
  let end = place;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

function decoded(bytes: Buffer): { readonly text: string; readonly isLossy: boolean } {
  const text = bytes.toString("utf8");
  return { text, isLossy: text.includes("\uFFFD") && Buffer.compare(Buffer.from(text), bytes) !== 0 };
}
