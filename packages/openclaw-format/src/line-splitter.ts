import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
/** One line of a file, without its line feed. A carriage return before the line feed belongs to the line. */
export interface SplitLine {
  /** A view on the chunk where the line lies in one: use it before the chunk is reused. The first bytes only of an over-long line. */
  readonly bytes: Uint8Array;
  /** Where the line begins in the file, in bytes from 0. */
  readonly byteOffset: number;
  /** The length of the whole line; more than `bytes` holds when the line is over-long. */
  readonly sizeBytes: number;
  /** False only for what follows the last line feed of the file. */
  readonly isTerminated: boolean;
}

/** Options of `createLineSplitter`. */
interface LineSplitterOptions {
  /** How many bytes of a longer line are kept, so that memory stays bounded. @default 16 MiB */
  readonly maxLineBytes?: number;
  /** Where the first chunk lies in the file. @default 0 */
  readonly byteOffset?: number;
}

/** Cuts the chunks of one file into lines. */
interface LineSplitter {
  /** The lines that end in this chunk. */
  push(chunk: Uint8Array): SplitLine[];
  /** What is left after the last line feed, or null. */
  end(): SplitLine | null;
}

export const defaultMaxLineBytes: number = 16 * 1024 * 1024;

const lineFeed = 0x0a;

export const splitterTable: OptionTable<LineSplitterOptions> = {
  maxLineBytes: optionKinds.number({ min: 1 }),
  byteOffset: optionKinds.number({ min: 0 }),
};

/**
 * Cuts bytes into lines at 0x0A and nowhere else. Splitters that also cut at U+2028, U+2029 or a lone carriage return
 * (Node's readline does) tear records apart that JSON allows.
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
      // Copied, as the caller may fill the same buffer again before the line ends; `slice` of a Buffer would not copy.
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
