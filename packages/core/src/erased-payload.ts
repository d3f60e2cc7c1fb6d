import type { ErrorCode } from "./error-codes.ts";
import { hasErrorCode } from "./throughline-error.ts";

/** Returns whether a payload does not decode because its key was destroyed on purpose, which is no damage. */
export function isErasedPayload(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED") && error.details["reason"] === ("KEY_DESTROYED" satisfies ErrorCode);
}
