import { isUtf8 } from "node:buffer";
import { decodeLine, detachEnvelope } from "@throughline/openclaw-format";
import { readPlainEnvelope } from "@throughline/openclaw-format/internal";
import type { StoreEnvelope } from "./store-envelope.ts";

/** A line without its envelope, as `detachEnvelope` gives it. */
export interface OwnLine {
  readonly text: string;
  readonly envelope: StoreEnvelope;
  /** As many bytes as characters. Not said of every line. */
  readonly isAscii: boolean;
}

/** How most lines end, with `attachEnvelope`'s comma, and no longer than this. */
const marker = ',"_tl":';
const plainEndLength = 140;
const [openBrace, closeBrace, comma] = [0x7b, 0x7d, 0x2c];

/**
 * Lines of a transcript in bytes that begin and end with whole ones. The common envelopes are recognized by their end,
 * and the text of a line is decoded once, without its envelope. So a session is read as fast as its JSON can be parsed.
 */
export class LinePiece {
  readonly bytes: Buffer;
  /** A character for each byte from a place on, to look for what is ASCII. */
  readonly #look: string;
  readonly #lookFrom: number;
  readonly #isUtf8: boolean;

  /** `lookFrom`: before it no line ends. */
  constructor(bytes: Uint8Array, lookFrom: number = 0) {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#look = this.bytes.toString("latin1", lookFrom);
    this.#lookFrom = lookFrom;
    this.#isUtf8 = isUtf8(this.bytes);
  }

  /** Where the line that begins at a place ends: at its line feed, or with the bytes. */
  endOf(from: number): number {
    const found = this.#look.indexOf("\n", from - this.#lookFrom);
    return found === -1 ? this.bytes.length : found + this.#lookFrom;
  }

  /** The line from one place to another, if a store's envelope is on it; null for a line of another program. */
  ownLine(from: number, to: number): OwnLine | null {
    return this.#plainLine(from, to) ?? otherLine(this.bytes.subarray(from, to));
  }

  #plainLine(from: number, to: number): OwnLine | null {
    const { bytes } = this;
    if (!this.#isUtf8 || bytes[from] !== openBrace || bytes[to - 1] !== closeBrace) return null;
    const tailFrom = Math.max(from, to - plainEndLength);
    const tail = this.#look.slice(tailFrom - this.#lookFrom, to - this.#lookFrom);
    const found = tail.lastIndexOf(marker);
    if (found < 1 || !endsMember(tail.charCodeAt(found - 1))) return null;
    const envelope = readPlainEnvelope(tail, found + marker.length, 1);
    if (envelope === null) return null;
    const at = tailFrom + found;
    try {
      // For the time of decoding, the comma before the envelope is the brace after it: joining two strings copies both.
      bytes[at] = closeBrace;
      const text = bytes.toString("utf8", from, at + 1);
      return { text, envelope, isAscii: text.length === at + 1 - from };
    } finally {
      bytes[at] = comma;
    }
  }
}

/** The line in the bytes if a store's envelope is on it; null for a line of another program. */
export function ownLine(bytes: Uint8Array): OwnLine | null {
  return new LinePiece(bytes, Math.max(0, bytes.length - plainEndLength)).ownLine(0, bytes.length);
}

/** An object without members has no comma, and white space before one is looked at with the whole line. */
function endsMember(code: number): boolean {
  return code !== openBrace && code !== 0x20 && code !== 0x09 && code !== 0x0d;
}

/** A line with another envelope than the common ones, or with none. */
function otherLine(bytes: Uint8Array): OwnLine | null {
  const source = decodeLine(bytes);
  if (typeof source !== "string") return null;
  const { text, envelope } = detachEnvelope(source);
  return envelope === null ? null : { text, envelope, isAscii: source.length === bytes.length };
}
