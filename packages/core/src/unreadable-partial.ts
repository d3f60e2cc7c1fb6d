import { hasErrorCode } from "./throughline-error.ts";

/**
 * Returns whether the text of an open reply cannot be read, although its store can be. Readers take such a text as none:
 * it must not keep them from the records, and the turn that writes it replaces it.
 */
export function isUnreadablePartial(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT", "STORE_VERSION_UNSUPPORTED", "CODEC_FAILED");
}
