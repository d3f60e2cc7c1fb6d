import type { ErrorCode } from "./error-codes.ts";
import { hasErrorCode } from "./throughline-error.ts";

/** Each of these reasons states that no keyring decodes the payload, now or later. */
const lasting: ReadonlySet<unknown> = new Set<ErrorCode>(["KEY_DESTROYED", "PAYLOAD_ALTERED"]);

/** Returns whether a payload does not decode because its key was destroyed on purpose, which is no damage. */
export function isErasedPayload(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED") && error.details["reason"] === ("KEY_DESTROYED" satisfies ErrorCode);
}

/** Returns whether the keyring lacks the key. An older copy of it does, and so it seems when a bit of the key's id has flipped. */
export function isKeyMissing(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED") && error.details["reason"] === ("KEY_MISSING" satisfies ErrorCode);
}

/**
 * Returns whether a payload never decodes again: it was altered, or its key was destroyed. A codec that gives no such
 * reason may decode it later, for example with the right copy of its keyring.
 */
export function isLostPayload(error: unknown): boolean {
  return hasErrorCode(error, "CODEC_FAILED") && lasting.has(error.details["reason"]);
}
