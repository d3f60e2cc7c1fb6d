import { createLineSplitter } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { LogDamage, LogImage, readLogLine, type LogReading } from "./log-image.ts";
import { decodeRowChange, type RowChange } from "./session-row.ts";
import { createSlices } from "./slices.ts";

export interface ReadLog {
  readonly identity: string;
  readonly image: LogImage;
  readonly damage: LogDamage;
  readonly endBytes: number;
  readonly lineCount: number;
}

const chunkBytes = 256 * 1024;
const scanChunkBytes = 1024 * 1024;

/**
 * Reads the log from its start in slices, so that other work can run in between. Returns null when there is no log. It
 * reports no findings.
 */
export async function readLogInSlices({ files, folder, codec, agent }: LogReading): Promise<ReadLog | null> {
  const path = folder.entriesLog;
  const handle = openIfThere(files, path);
  if (handle === null) return null;
  try {
    const { identity } = withFileErrors(path, () => files.factsOf(handle));
    const [image, damage, slices] = [new LogImage(), new LogDamage(), createSlices()];
    const splitter = createLineSplitter({ maxLineBytes: Number.MAX_SAFE_INTEGER });
    let endBytes = 0;
    let lineCount = 0;
    for (let position = 0; ;) {
      const bytes = withFileErrors(path, () => readRange(files, handle, position, position + chunkBytes));
      if (bytes.length === 0) return { identity, image, damage, endBytes, lineCount };
      for (const line of splitter.push(bytes)) {
        const read = readLogLine(line.bytes, codec, agent);
        endBytes = line.byteOffset + line.sizeBytes + 1;
        lineCount++;
        damage.add(read, lineCount);
        for (const { change } of read.decoded) {
          image.apply(change);
          damage.mend(change);
        }
        await slices.next();
      }
      position += bytes.length;
    }
  } finally {
    files.close(handle);
  }
}

/**
 * Passes the lines of a span of the log to `take`. Returns the last line when it lacks its line feed, otherwise null.
 */
export function scanLog(
  { files, folder }: Pick<LogReading, "files" | "folder">,
  handle: number,
  span: { readonly from: number; readonly to: number },
  take: (line: SplitLine) => void,
): SplitLine | null {
  return withFileErrors(folder.entriesLog, () => {
    const splitter = createLineSplitter({ byteOffset: span.from, maxLineBytes: Number.MAX_SAFE_INTEGER });
    for (let position = span.from; position < span.to;) {
      const bytes = readRange(files, handle, position, Math.min(position + scanChunkBytes, span.to));
      if (bytes.length === 0) break;
      for (const line of splitter.push(bytes)) take(line);
      position += bytes.length;
    }
    return splitter.end();
  });
}

/**
 * Holds the text behind the last line feed of the entries log. Its writer may still be writing, or dead. The next
 * writer decides that under the lock.
 */
export class LogTail {
  /** States where that text starts; null when the log ends with a line feed. */
  at: number | null = null;
  /** Holds a complete line that lacks only its line feed. Such a line counts, as in a transcript. */
  #line: Uint8Array = new Uint8Array(0);

  get isWhole(): boolean {
    return this.#line.length > 0;
  }

  /**
   * Returns the end of the log for readers, which includes a complete last line. `endBytes` is the position behind the
   * last line feed.
   */
  endOf(endBytes: number): number {
    return endBytes + this.#line.length;
  }

  /**
   * Returns the change of the last line, because a power cut may lose only the line feed. Returns null when the line is
   * incomplete.
   */
  take({ bytes, byteOffset }: SplitLine, { codec, agent }: Pick<LogReading, "codec" | "agent">): RowChange | null {
    this.at = byteOffset;
    const text = Buffer.from(bytes).toString();
    // Another byte may have replaced the line feed, as after a power cut.
    const isEnded = !text.endsWith("}") && !text.endsWith("\0");
    const read = decodeRowChange(isEnded ? text.slice(0, -1) : text, codec, agent);
    if (read?.isChecksumRight !== true) return null;
    this.#line = Uint8Array.from(bytes);
    return read.change;
  }

  /** Tests whether the writer undid its line and other text follows now, because the line's change is then void. */
  isOther(files: Files, open: { readonly handle: number }): boolean {
    if (this.at === null || !this.isWhole) return false;
    return Buffer.compare(readRange(files, open.handle, this.at, this.endOf(this.at)), this.#line) !== 0;
  }

  clear(): void {
    this.at = null;
    this.#line = new Uint8Array(0);
  }
}
