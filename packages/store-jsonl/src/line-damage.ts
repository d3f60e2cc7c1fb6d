import { crc32 } from "node:zlib";
import { quote, refused } from "@throughline/core/internal";
import { type OwnLine, readSealedLine } from "./store-envelope.ts";

/** These two marks enclose every envelope. Inside a record's text their quotes would be escaped. */
const envelopeStart = Buffer.from('"_tl":{"seq":');
const envelopeEnd = /,"(?:crc|sum)":\d{1,10}\}\}$/;

/** Tests whether a line is a damaged line of this store: one end of its envelope is left, but it does not parse. */
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
 * Tests whether the first line of a transcript is a header of this store, even a damaged one. Read as a record, it
 * would shift every seq.
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
 * Tests whether another byte replaces the line feed behind a line of this store. Zeros, a carriage return or a missing
 * byte do not count, because power cuts and other programs leave those.
 */
export function hasOtherEnd(bytes: Uint8Array): boolean {
  const line = viewOf(bytes);
  if (!line.includes(seal)) return false;
  const found = /,"sum":\d{1,10}\}\}(?=[^{\r\0](?:\{|$))/.exec(line.toString("latin1"));
  return found !== null && readSealedLine(line.subarray(0, found.index + found[0].length))?.isIntact === true;
}

export function isWholeLine(bytes: Uint8Array): boolean {
  const own = readSealedLine(bytes);
  if (own === null) return !isDamagedOwn(bytes) && !hasOtherEnd(bytes);
  const { text, envelope, isIntact } = own;
  const { crc, enc } = envelope;
  return isIntact && (crc === undefined || crc === crc32(enc === undefined ? text : Buffer.from(enc, "base64")));
}

export function damagedLineError(path: string, line: number, byteOffset: number): Error {
  const message = `Line ${line} of ${quote(path)} is damaged: it does not fit its checksum.`;
  return refused("STORE_CORRUPT", message, { path, line, byteOffset });
}

export function lostMessage(count: number, isInAppend: boolean): string {
  const verb = count === 1 ? "is" : "are";
  if (isInAppend)
    return `The file ends in the middle of an acknowledged append: ${count} of its records ${verb} missing.`;
  return `${count} acknowledged ${count === 1 ? "record" : "records"} ${verb} missing at the end of the file.`;
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
