import { type ErrorCode, hasErrorCode, ThroughlineError } from "@throughline/core";
import { isLostPayload } from "@throughline/core/internal";

/**
 * States what a call waits for. `away`: for the store, as every later call does. `busy`: for another owner's turn in its
 * session. `keyless`: for the key of its file or of its session, which other calls may not need.
 */
export type CallWait = "away" | "busy" | "keyless";

const awayCodes: readonly ErrorCode[] = [
  "STORE_UNREACHABLE",
  "STORE_LOCKED",
  "STORE_OVERLOADED",
  "STORE_READ_ONLY",
  "STORE_FULL",
  "STORE_IO",
  "STORE_CLOSED",
  "SESSION_BUSY",
];

/** Without its keyring a store neither reads nor writes, whatever the session. */
const keyringCodes: ReadonlySet<unknown> = new Set<ErrorCode>(["KEYRING_IO", "KEYRING_NOT_FOUND", "MAIN_KEY_WRONG"]);
const keyCodes: ReadonlySet<unknown> = new Set<ErrorCode>(["CODEC_FAILED", "KEY_MISSING", "KEYRING_DAMAGED"]);

/** Returns whether storing may succeed later, because the store is away or the session is busy. */
export function isStoreAway(error: unknown): boolean {
  return hasErrorCode(error, ...awayCodes);
}

/**
 * Returns what a call waits for that was not stored; null when it never will be. The codec of the journal throws its own
 * errors, and a store gives them as the reason of CODEC_FAILED.
 */
export function waitOf(error: unknown): CallWait | null {
  if (hasErrorCode(error, "SESSION_BUSY")) return "busy";
  if (isStoreAway(error)) return "away";
  if (!ThroughlineError.isInstance(error) || isLostPayload(error)) return null;
  if (keyringCodes.has(error.code) || keyringCodes.has(error.details["reason"])) return "away";
  return keyCodes.has(error.code) ? "keyless" : null;
}

/** Returns the reason that a person has to know, because only a person ends the wait; null for any other wait. */
export function keyReason(error: unknown): string | null {
  if (isStoreAway(error) || waitOf(error) === null || !ThroughlineError.isInstance(error)) return null;
  return String(error.details["reason"] ?? error.code);
}
