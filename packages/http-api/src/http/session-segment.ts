import { refused } from "@throughline/core/internal";

/**
 * Decodes the session key of a path segment, which is percent-encoded, or `~` followed by base64url.
 * @throws {ThroughlineError} INPUT_INVALID for a segment that is not encoded UTF-8, KEY_INVALID for a key with NUL
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
    // Node skips characters that are not base64url, so only a text that survives the round trip was valid.
    if (bytes.toString("base64url") === text) return decoder.decode(bytes);
  } catch {
    // The key is not UTF-8. The error below covers this case too.
  }
  throw refused("INPUT_INVALID", "A session after `~` is base64url of a key in UTF-8.");
}
