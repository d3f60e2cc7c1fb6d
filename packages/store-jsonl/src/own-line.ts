import { decodeLine, detachEnvelope, plainEnvelope } from "@throughline/openclaw-format";
import type { StoreEnvelope } from "./stored-line.ts";

/** A line without its envelope, as `detachEnvelope` gives it. */
export interface OwnLine {
  readonly text: string;
  readonly envelope: StoreEnvelope;
  /** As many bytes as characters. Not said of every line. */
  readonly isAscii: boolean;
}

/** How most lines end, and no longer than this. */
const plainEnd = new RegExp(`[^\\s{],"_tl":${plainEnvelope.pattern}\\}$`);
const plainEndBytes = 140;
const [openBrace, closeBrace, comma] = [0x7b, 0x7d, 0x2c];
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The line in the bytes if a store's envelope is on it; null for a line of another program. The common envelopes are
 * told by their end, and the text is decoded once, without them: a session is read as fast as its JSON can be parsed.
 */
export function ownLine(bytes: Uint8Array): OwnLine | null {
  const plain = plainLine(bytes);
  if (plain !== null) return plain;
  const source = decodeLine(bytes);
  if (typeof source !== "string") return null;
  const { text, envelope } = detachEnvelope(source);
  return envelope === null ? null : { text, envelope, isAscii: source.length === bytes.length };
}

function plainLine(bytes: Uint8Array): OwnLine | null {
  if (bytes[0] !== openBrace) return null;
  const view = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const from = Math.max(0, view.length - plainEndBytes);
  const found = plainEnd.exec(view.toString("latin1", from));
  const envelope = plainEnvelope.of(found);
  if (found === null || envelope === null) return null;
  const end = from + found.index + 1;
  try {
    // For the time of decoding, the comma before the envelope is the brace after it: joining two strings copies both.
    view[end] = closeBrace;
    const text = strictDecoder.decode(view.subarray(0, end + 1));
    return { text, envelope, isAscii: text.length === end + 1 };
  } catch {
    // No UTF-8: another program's line, whatever its end looks like.
    return null;
  } finally {
    view[end] = comma;
  }
}
