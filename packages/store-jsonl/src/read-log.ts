import { createLineSplitter } from "@throughline/openclaw-format";
import { type SplitLine } from "@throughline/openclaw-format/internal";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { LogDamage, LogImage, readLogLine, type LogReading } from "./log-image.ts";
import { decodeRowChange, type RowChange } from "./session-row.ts";
import { createSlices } from "./slices.ts";

/** What a log adds up to, up to the end of its last whole line. */
export interface ReadLog {
  readonly identity: string;
  readonly image: LogImage;
  readonly damage: LogDamage;
  readonly endBytes: number;
  readonly lineCount: number;
}

const chunkBytes = 256 * 1024;
const scanChunkBytes = 1024 * 1024;

/** Reads the log from its beginning, with others running in between; null when there is none. Reports nothing. */
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

/** Gives the lines of an open log from one place to another. Returns the last line where it lacks its line feed, else null. */
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
 * What stands behind the last line feed of the entries log. Its writer may be in the middle of it, or dead: whoever writes next,
 * under the lock, finds out.
 */
export class LogTail {
  /** Null: the log ends with a line feed. */
  at: number | null = null;
  /** A whole line that lacks only its line feed. It counts, as in a transcript. */
  #line: Uint8Array = new Uint8Array(0);

  /** Whether it is a whole line. */
  get isWhole(): boolean {
    return this.#line.length > 0;
  }

  /** Where the log ends for those who read it; `endBytes`: the place behind its last line feed. */
  endOf(endBytes: number): number {
    return endBytes + this.#line.length;
  }

  /** The change the last line stands for; null where it is not whole. A power cut may take the line feed alone. */
  take({ bytes, byteOffset }: SplitLine, { codec, agent }: Pick<LogReading, "codec" | "agent">): RowChange | null {
    this.at = byteOffset;
    const text = Buffer.from(bytes).toString();
    // Another byte may stand in the place of the line feed.
    const isEnded = !text.endsWith("}") && !text.endsWith("\0");
    const read = decodeRowChange(isEnded ? text.slice(0, -1) : text, codec, agent);
    if (read?.isChecksumRight !== true) return null;
    this.#line = Uint8Array.from(bytes);
    return read.change;
  }

  /** Whether its writer took it back and something else stands in its place. */
  isOther(files: Files, open: { readonly handle: number }): boolean {
    if (this.at === null || !this.isWhole) return false;
    return Buffer.compare(readRange(files, open.handle, this.at, this.endOf(this.at)), this.#line) !== 0;
  }

  clear(): void {
    this.at = null;
    this.#line = new Uint8Array(0);
  }
}
