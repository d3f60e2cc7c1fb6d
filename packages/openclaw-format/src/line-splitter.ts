import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
/** Holds one line of a file without its line feed. A carriage return before the line feed belongs to the line. */
export interface SplitLine {
  /**
   * Holds the bytes of the line. They may share memory with the chunk: use them before the chunk is reused. An
   * over-long line has only its first bytes here.
   */
  readonly bytes: Uint8Array;
  /** States the byte offset of the line in the file, from 0. */
  readonly byteOffset: number;
  /** States the length of the whole line in bytes. It exceeds the length of `bytes` for an over-long line. */
  readonly sizeBytes: number;
  /** States whether a line feed ends the line. False only for the rest after the last line feed of the file. */
  readonly isTerminated: boolean;
}

/** Holds the options of `createLineSplitter`. */
interface LineSplitterOptions {
  /** Limits how many bytes of a line are kept, so that memory stays bounded. @default 16 MiB */
  readonly maxLineBytes?: number | undefined;
  /** States the byte offset of the first chunk in the file. @default 0 */
  readonly byteOffset?: number | undefined;
}

/** Cuts the chunks of one file into lines. */
interface LineSplitter {
  /** Returns the lines that end in this chunk. */
  push(chunk: Uint8Array): SplitLine[];
  /** Returns the rest after the last line feed, or null when the file ends with a line feed. */
  end(): SplitLine | null;
}

export const defaultMaxLineBytes: number = 16 * 1024 * 1024;

const lineFeed = 0x0a;

export const splitterTable: OptionTable<LineSplitterOptions> = {
  maxLineBytes: optionKinds.number({ min: 1 }),
  byteOffset: optionKinds.number({ min: 0 }),
};

/**
 * Creates a splitter that cuts bytes into lines at 0x0A only. Splitters that also cut at U+2028, U+2029 or a lone
 * carriage return, such as Node's readline, break records that JSON allows.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export function createLineSplitter(options: LineSplitterOptions = {}): LineSplitter {
  assertKnownOptions<LineSplitterOptions>("createLineSplitter", options, splitterTable);
  const maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes;
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let keptBytes = 0;
  let lineOffset = options.byteOffset ?? 0;

  const take = (tail: Uint8Array, isTerminated: boolean): SplitLine => {
    const sizeBytes = pendingBytes + tail.length;
    const wanted = tail.subarray(0, Math.max(0, maxLineBytes - keptBytes));
    const bytes = pending.length === 0 ? wanted : joinBytes([...pending, wanted], keptBytes + wanted.length);
    const line = { bytes, byteOffset: lineOffset, sizeBytes, isTerminated };
    lineOffset += sizeBytes + 1;
    pending = [];
    pendingBytes = 0;
    keptBytes = 0;
    return line;
  };

  return {
    push(chunk) {
      const lines: SplitLine[] = [];
      let start = 0;
      for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, start)) {
        lines.push(take(chunk.subarray(start, at), true));
        start = at + 1;
      }
      const rest = chunk.subarray(start);
      // The rest is copied, because the caller may refill the buffer before the line ends. A Buffer's `slice` would not
      // copy.
      const kept = new Uint8Array(rest.subarray(0, Math.max(0, maxLineBytes - keptBytes)));
      if (kept.length > 0) pending.push(kept);
      keptBytes += kept.length;
      pendingBytes += rest.length;
      return lines;
    },
    end() {
      return pendingBytes === 0 ? null : take(new Uint8Array(0), false);
    },
  };
}

function joinBytes(parts: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  const joined = new Uint8Array(sizeBytes);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
