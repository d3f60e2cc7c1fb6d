import { isLostPayload } from "./erased-payload.ts";
import { hasErrorCode } from "./throughline-error.ts";

/**
 * Returns whether the text of an open reply cannot be read, although its store can be. Readers take such a text as none:
 * it must not keep them from the records, and the turn that writes it replaces it.
 */
export function isUnreadablePartial(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED") || isLostPartial(error);
}

/** Returns whether the text never can be read: a codec whose keys are away for the moment has it still. */
export function isLostPartial(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT", "STORE_VERSION_UNSUPPORTED") || isLostPayload(error);
}
