import { crc32 } from "node:zlib";
import { quote, refused } from "@throughline/core/internal";
import { type OwnLine, readSealedLine } from "./store-envelope.ts";

/** The beginning and the end of every envelope of ours. In the text of a record the quotes would be escaped. */
const envelopeStart = Buffer.from('"_tl":{"seq":');
const envelopeEnd = /,"(?:crc|sum)":\d{1,10}\}\}$/;

/** Whether a line is what is left of one of ours: one of the two ends of its envelope is damaged, or its JSON is. */
export function isDamagedOwn(bytes: Uint8Array): boolean {
  const line = viewOf(bytes);
  return line.includes(envelopeStart) || envelopeEnd.test(line.subarray(-24).toString("latin1"));
}

const [headerStart, headerMark] = [Buffer.from('{"type":"session","version":3,'), Buffer.from('"_tl":{"seq":0')];
const seal = Buffer.from('"sum":');

interface FirstLine {
  readonly isTerminated: boolean;
  bytes(): Uint8Array;
}

/**
 * Whether the first line of a transcript is a header of ours, also a damaged one. Read as a record it would give every record
 * behind it another seq.
 */
export function isOwnHeader(line: OwnLine | null, framed: FirstLine): boolean {
  if (line !== null) return line.envelope.seq === 0;
  if (!framed.isTerminated) return false;
  const bytes = viewOf(framed.bytes());
  if (hasOtherEnd(bytes)) return false;
  return (
    bytes.includes(headerMark) || (bytes.subarray(0, headerStart.length).equals(headerStart) && bytes.includes(seal))
  );
}

/**
 * Whether another byte stands in the place of the line feed behind a line of ours. Zeros, a carriage return, or nothing at all
 * are what power cuts and other programs leave there.
 */
export function hasOtherEnd(bytes: Uint8Array): boolean {
  const line = viewOf(bytes);
  if (!line.includes(seal)) return false;
  const found = /,"sum":\d{1,10}\}\}(?=[^{\r\0](?:\{|$))/.exec(line.toString("latin1"));
  return found !== null && readSealedLine(line.subarray(0, found.index + found[0].length))?.isIntact === true;
}

/** Whether a line of a transcript is as it was written, as far as checksums say that. Lines of other programs have none. */
export function isWholeLine(bytes: Uint8Array): boolean {
  const own = readSealedLine(bytes);
  if (own === null) return !isDamagedOwn(bytes) && !hasOtherEnd(bytes);
  const { text, envelope, isIntact } = own;
  const { crc, enc } = envelope;
  return isIntact && (crc === undefined || crc === crc32(enc === undefined ? text : Buffer.from(enc, "base64")));
}

/** The error for a line of ours that does not say any more what was written. */
export function damagedLineError(path: string, line: number, byteOffset: number): Error {
  const message = `Line ${line} of ${quote(path)} is damaged: it does not fit its checksum.`;
  return refused("STORE_CORRUPT", message, { path, line, byteOffset });
}

/** Says how many acknowledged records are missing at the end of a transcript. `isInAppend`: the rest of their append is there. */
export function lostMessage(count: number, isInAppend: boolean): string {
  const verb = count === 1 ? "is" : "are";
  if (isInAppend)
    return `The file ends in the middle of an acknowledged append: ${count} of its records ${verb} missing.`;
  return `${count} acknowledged ${count === 1 ? "record" : "records"} ${verb} missing at the end of the file.`;
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
