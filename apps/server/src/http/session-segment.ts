import { refused } from "@throughline/core/internal";

/**
 * The key that a path segment names: percent-encoded, or `~` and base64url.
 * @throws {ThroughlineError} INPUT_INVALID for what is not encoded UTF-8, KEY_INVALID for a key with NUL
 */
export function keyOfSegment(segment: string): string {
  const key = segment.startsWith("~") ? fromBase64(segment.slice(1)) : decodeSegment(segment);
  if (key.includes("\0")) throw refused("KEY_INVALID", "A session key holds no NUL.");
  return key;
}

/** @throws {ThroughlineError} INPUT_INVALID */
export function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw refused("INPUT_INVALID", "A part of the path is not percent-encoded UTF-8.", {}, cause);
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function fromBase64(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  try {
    // Node skips what it does not know: only what comes out as it went in was base64url.
    if (bytes.toString("base64url") === text) return decoder.decode(bytes);
  } catch {
    // Not UTF-8: said below.
  }
  throw refused("INPUT_INVALID", "A session after `~` is base64url of a key in UTF-8.");
}
