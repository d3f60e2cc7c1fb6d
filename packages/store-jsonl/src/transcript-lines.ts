import { constants } from "node:buffer";
import { isNestedDeeper, maxNesting } from "@throughline/core/internal";
import type { LinePlace, SplitLine } from "@throughline/openclaw-format/internal";
import type { TranscriptLine, TranscriptReader } from "@throughline/openclaw-format";
import { parseObject } from "./json-members.ts";

/** No line of ours is longer: it was one text when it was written, and must be one again to be read. */
export const maxOwnLineBytes: number = constants.MAX_STRING_LENGTH;

/** The bytes of a file from one place to another. */
export type ReadBytes = (from: number, to: number) => Uint8Array;

const chunkBytes = 1024 * 1024;
const marker = Buffer.from('"_tl":{"seq":');
const [quoteMark, backslash, openBrace, closeBrace] = [0x22, 0x5c, 0x7b, 0x7d];
const spaces: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

/**
 * Completes a line that was cut off because it exceeds the limit, if it is ours. An acknowledged line is read whatever
 * the limits are now, however long its envelope, its coding or its patch of the entry made it. Another program's stays
 * cut off.
 */
export function wholeIfOurs(read: ReadBytes, line: SplitLine): SplitLine {
  const { byteOffset, sizeBytes, bytes } = line;
  if (bytes.length === sizeBytes || !isLongLineOurs(read, byteOffset, byteOffset + sizeBytes)) return line;
  return { ...line, bytes: read(byteOffset, byteOffset + sizeBytes) };
}

/** Whether an envelope of ours ends the line, found with memory for a small part of it. */
export function isLongLineOurs(read: ReadBytes, from: number, to: number): boolean {
  if (to - from > maxOwnLineBytes) return false;
  const at = lastMarker(read, from, to);
  return at !== null && endsAfterObject(read, at + marker.length - '{"seq":'.length, to);
}

/** The envelope is the only place where the marker is not escaped, but for a member of the record's own before it. */
function lastMarker(read: ReadBytes, from: number, to: number): number | null {
  for (let end = to; end > from; end -= chunkBytes) {
    const start = Math.max(from, end - chunkBytes);
    const bytes = Buffer.from(read(start, Math.min(to, end + marker.length - 1)));
    const found = bytes.lastIndexOf(marker);
    if (found !== -1) return start + found;
  }
  return null;
}

/** Whether behind the object that begins at a place there is one brace more, and the end. */
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
 * Shows a record of ours to the reader of foreign transcripts, which follows ids, parents and the head. What we took is a
 * record, however long and deep it is: the reader is shown no more of it than it would take from anybody.
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
