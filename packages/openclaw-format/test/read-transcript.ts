import { createLineSplitter, createTranscriptReader, decodeLine } from "@throughline/openclaw-format";
import type { TranscriptLine, TranscriptReader, TranscriptReaderOptions } from "../src/transcript-reader.ts";

export interface ReadTranscript {
  readonly lines: readonly TranscriptLine[];
  readonly reader: TranscriptReader;
  /** Code and line of every finding. */
  readonly found: readonly string[];
}

/** Reads the bytes of a file as a store or an import does. */
export function readTranscript(bytes: Uint8Array | string, options: TranscriptReaderOptions = {}): ReadTranscript {
  const splitter = createLineSplitter(options.maxLineBytes === undefined ? {} : { maxLineBytes: options.maxLineBytes });
  const reader = createTranscriptReader(options);
  const split = splitter.push(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  const last = splitter.end();
  const all = last === null ? split : [...split, last];
  const lines = all.map((line, index) => {
    const { byteOffset, sizeBytes, isTerminated } = line;
    return reader.push(decodeLine(line.bytes), { line: index + 1, byteOffset, sizeBytes, isTerminated });
  });
  const found = reader.finish().map(({ code, line }) => `${code}@${line}`);
  return { lines, reader, found };
}

/** One JSON value a line. */
export function jsonLines(...values: readonly unknown[]): string {
  return values.map((value) => `${typeof value === "string" ? value : JSON.stringify(value)}\n`).join("");
}

export const header = { type: "session", version: 3, id: "s1", timestamp: "2026-02-01T16:10:50.414Z", cwd: "/work" };

export function message(id: string, parentId: string | null, text: string): Record<string, unknown> {
  return {
    type: "message",
    id,
    parentId,
    timestamp: "2026-02-01T16:10:51.000Z",
    message: { role: "user", content: text },
  };
}
