import { Buffer } from "node:buffer";
import type { RecordSource } from "@throughline/core/internal";

const [lineFeed, backslash, letterN] = [0x0a, 0x5c, 0x6e];

/**
 * Encodes a piece of a document as one line, because a record's source is one line. A line feed becomes `\n`, and a
 * backslash is doubled.
 */
export function oneLineSource(source: RecordSource): RecordSource {
  if (typeof source === "string") return source.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  const escaped: number[] = [];
  for (const byte of source) {
    if (byte === lineFeed) escaped.push(backslash, letterN);
    else if (byte === backslash) escaped.push(backslash, backslash);
    else escaped.push(byte);
  }
  return Uint8Array.from(escaped);
}

/** Reverses `oneLineSource`. */
export function documentSource(source: RecordSource): RecordSource {
  if (typeof source === "string") {
    return source.replaceAll(/\\[\\n]/g, (escape) => (escape === "\\n" ? "\n" : "\\"));
  }
  const bytes: number[] = [];
  for (let at = 0; at < source.length; at++) {
    const byte = source[at] as number;
    if (byte !== backslash) bytes.push(byte);
    else {
      at += 1;
      bytes.push(source[at] === letterN ? lineFeed : backslash);
    }
  }
  return Uint8Array.from(bytes);
}

export function sourceBytes(source: RecordSource): number {
  return typeof source === "string" ? Buffer.byteLength(source) : source.length;
}
