import type { RecordSource } from "@throughline/core/internal";

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenientDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();
const byteOrderMark = "\uFEFF";

/**
 * Returns the line as text when its bytes are well-formed UTF-8 without a byte order mark. Otherwise returns a copy of
 * the bytes.
 */
export function decodeLine(bytes: Uint8Array): RecordSource {
  const hasByteOrderMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  if (hasByteOrderMark) return new Uint8Array(bytes);
  try {
    return strictDecoder.decode(bytes);
  } catch {
    // A Buffer's `slice` would share memory with the original, and the caller may refill that buffer.
    return new Uint8Array(bytes);
  }
}

/** Returns the bytes of a source. The function is the exact inverse of `decodeLine`. */
export function encodeLine(source: RecordSource): Uint8Array {
  return typeof source === "string" ? encoder.encode(source) : source;
}

export interface ReadableLine {
  readonly text: string;
  readonly hasByteOrderMark: boolean;
  /** True means that bytes which are not UTF-8 were replaced by U+FFFD. */
  readonly hasReplacements: boolean;
}

export function readableLine(source: RecordSource): ReadableLine {
  if (typeof source === "string") return { text: source, hasByteOrderMark: false, hasReplacements: false };
  const decoded = lenientDecoder.decode(source);
  const hasByteOrderMark = decoded.startsWith(byteOrderMark);
  return {
    text: hasByteOrderMark ? decoded.slice(1) : decoded,
    hasByteOrderMark,
    hasReplacements: !isWellFormed(source),
  };
}

function isWellFormed(bytes: Uint8Array): boolean {
  try {
    strictDecoder.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
