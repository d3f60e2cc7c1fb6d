import type { Finding, SessionRef } from "@throughline/core";
import { createLineSplitter, type SplitLine } from "@throughline/openclaw-format";
import type { AgentFolder } from "./agent-folder.ts";
import { openIfThere, readRange, withFileErrors } from "./file-work.ts";
import type { Files } from "./files.ts";
import { LogDamage, readLogLine } from "./log-damage.ts";
import { RowImage } from "./row-image.ts";
import type { SessionIndex } from "./session-index.ts";
import { createSlices } from "./slices.ts";
import type { LineCodec } from "./stored-line.ts";
import type { UnflushedMarks } from "./unflushed-marks.ts";

export interface EntriesLogOptions {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly agent: Pick<SessionRef, "namespace" | "agentId">;
  readonly codec: LineCodec;
  readonly index: SessionIndex;
  readonly unflushed: UnflushedMarks;
  readonly nowMs: () => number;
  readonly onFinding: (finding: Finding) => void;
}

/** What a log adds up to, up to the end of its last whole line. */
export interface ReadLog {
  readonly identity: string;
  readonly image: RowImage;
  readonly damage: LogDamage;
  readonly endBytes: number;
  readonly lineCount: number;
}

const chunkBytes = 256 * 1024;
const scanChunkBytes = 1024 * 1024;

/** Reads the log from its beginning, with others running in between; null when there is none. Reports nothing. */
export async function readLogInSlices({ files, folder, codec, agent }: EntriesLogOptions): Promise<ReadLog | null> {
  const path = folder.entriesLog;
  const handle = openIfThere(files, path);
  if (handle === null) return null;
  try {
    const { identity } = withFileErrors(path, () => files.factsOf(handle));
    const [image, damage, slices] = [new RowImage(), new LogDamage(), createSlices()];
    const splitter = createLineSplitter({ maxLineBytes: Number.MAX_SAFE_INTEGER });
    let endBytes = 0;
    let lineCount = 0;
    for (let position = 0; ;) {
      const bytes = withFileErrors(path, () => readRange(files, handle, position, position + chunkBytes));
      if (bytes.length === 0) return { identity, image, damage, endBytes, lineCount };
      for (const line of splitter.push(bytes)) {
        const { decoded, lost } = readLogLine(line.bytes, codec, agent);
        endBytes = line.byteOffset + line.sizeBytes + 1;
        lineCount++;
        if (lost !== null) damage.add(lost);
        for (const { change } of decoded) {
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
  { files, folder }: Pick<EntriesLogOptions, "files" | "folder">,
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
