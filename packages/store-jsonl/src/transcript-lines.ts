import { constants } from "node:buffer";
import { isNestedDeeper, maxNesting } from "@throughline/core/internal";
import type { LinePlace, SplitLine, TranscriptLine, TranscriptReader } from "@throughline/openclaw-format/internal";
import { parseObject } from "./json-members.ts";

/** A line of this store is never longer, because it is one string when it is written and when it is read. */
export const maxOwnLineBytes: number = constants.MAX_STRING_LENGTH;

export type ReadBytes = (from: number, to: number) => Uint8Array;

const chunkBytes = 1024 * 1024;
const marker = Buffer.from('"_tl":{"seq":');
const [quoteMark, backslash, openBrace, closeBrace] = [0x22, 0x5c, 0x7b, 0x7d];
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/**
 * Completes a line that was truncated at the limit, if this store wrote it. An acknowledged line must be readable under
 * every limit. Its envelope, its encoding or its entry patch may have made it longer. Another program's line stays
 * truncated.
 */
export function wholeIfOurs(read: ReadBytes, line: SplitLine): SplitLine {
  const { byteOffset, sizeBytes, bytes } = line;
  if (bytes.length === sizeBytes || !isLongLineOurs(read, byteOffset, byteOffset + sizeBytes)) return line;
  return { ...line, bytes: read(byteOffset, byteOffset + sizeBytes) };
}

/** Tests whether the line ends with an envelope of this store. It reads small parts, because the line may be large. */
export function isLongLineOurs(read: ReadBytes, from: number, to: number): boolean {
  if (to - from > maxOwnLineBytes) return false;
  const at = lastMarker(read, from, to);
  return at !== null && endsAfterObject(read, at + marker.length - '{"seq":'.length, to);
}

/**
 * Finds the last marker. Only the envelope contains it unescaped, except for a member of the record itself before it.
 */
function lastMarker(read: ReadBytes, from: number, to: number): number | null {
  for (let end = to; end > from; end -= chunkBytes) {
    const start = Math.max(from, end - chunkBytes);
    const bytes = Buffer.from(read(start, Math.min(to, end + marker.length - 1)));
    const found = bytes.lastIndexOf(marker);
    if (found !== -1) return start + found;
  }
  return null;
}

function endsAfterObject(read: ReadBytes, from: number, to: number): boolean {
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  for (let start = from; start < to; start += chunkBytes) {
    for (const byte of read(start, Math.min(to, start + chunkBytes))) {
      if (isEscaped) isEscaped = false;
      else if (isText) {
        isEscaped = byte === backslash;
        isText = byte !== quoteMark;
      } else if (depth < 0) {
        if (!spaces.has(byte)) return false;
      } else if (byte === quoteMark) isText = true;
      else if (byte === openBrace) depth++;
      else if (byte === closeBrace) depth--;
      else if (depth === 0) return false;
    }
  }
  return depth < 0;
}

/**
 * Passes a record of this store to the reader of foreign transcripts, which tracks ids, parents and the head. An
 * accepted record stays a record, whatever its length and nesting. The reader gets only as much of it as the reader's
 * limits allow.
 */
export function readOwnRow(
  reader: TranscriptReader,
  text: string,
  place: Pick<LinePlace, "line" | "byteOffset" | "envelope" | "isOurs" | "isTerminated">,
): TranscriptLine {
  const record = mayBeDeep(text) ? parseObject(text) : null;
  if (record === null || !isNestedDeeper(record, maxNesting)) return reader.push(text, { ...place, sizeBytes: 0 });
  const flat = Object.entries(record).filter(([, value]) => typeof value !== "object" || value === null);
  const read = reader.push(JSON.stringify(Object.fromEntries(flat)), { ...place, sizeBytes: 0 });
  const { id, parentId } = read.record;
  const isSame = id === record["id"] && parentId === record["parentId"];
  const whole = (isSame ? record : { ...record, id, parentId }) as TranscriptLine["record"];
  return { ...read, source: text, record: whole };
}

function mayBeDeep(text: string): boolean {
  let count = 0;
  for (let at = 0; at < text.length && count <= maxNesting; at++) {
    const code = text.charCodeAt(at);
    if (code === openBrace || code === 0x5b) count++;
  }
  return count > maxNesting;
}
