import type { SourceFile } from "./node/source-files.ts";

/** Holds one line without its line feed. */
export type DatabaseLine = string | Uint8Array;

export type LineSequence = Iterable<DatabaseLine> | AsyncIterable<DatabaseLine>;

const lineFeed = 0x0a;
const chunkBytes = 256 * 1024;

/**
 * Presents lines that are in no file as a file, so that an import counts, hashes and resumes by bytes.
 * Each read requests the lines again. They must be the same each time, up to the end of the first read.
 */
export function createLineSource(path: string, sizeBytes: number, lines: () => LineSequence): SourceFile {
  return {
    path,
    sizeBytes,
    async *chunks({ fromBytes = 0, toBytes = sizeBytes } = {}) {
      let at = 0;
      for await (const chunk of joined(lines())) {
        const from = Math.max(0, fromBytes - at);
        const to = Math.min(chunk.length, toBytes - at);
        if (from < to) yield chunk.subarray(from, to);
        at += chunk.length;
        if (at >= toBytes) return;
      }
    },
    close: () => Promise.resolve(),
  };
}

/** Counts the bytes of the lines, with a line feed each. */
export async function lineBytes(lines: LineSequence): Promise<number> {
  let sum = 0;
  for await (const line of lines) sum += (typeof line === "string" ? Buffer.byteLength(line) : line.length) + 1;
  return sum;
}

async function* joined(lines: LineSequence): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let heldBytes = 0;
  for await (const line of lines) {
    const bytes = typeof line === "string" ? Buffer.from(line, "utf8") : line;
    parts.push(bytes, Uint8Array.of(lineFeed));
    heldBytes += bytes.length + 1;
    if (heldBytes < chunkBytes) continue;
    yield Buffer.concat(parts);
    parts = [];
    heldBytes = 0;
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}
