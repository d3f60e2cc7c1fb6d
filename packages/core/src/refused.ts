import type { ErrorCode } from "./error-codes.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Creates an error whose outcome states that nothing was changed. */
export function refused(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): ThroughlineError {
  return new ThroughlineError(code, message, { outcome: "not-applied", details, cause });
}

/** Creates ABORTED with a message such as "The signal was aborted before the write began." */
export function abortedBefore(what: string, signal: AbortSignal | undefined): ThroughlineError {
  return refused("ABORTED", `The signal was aborted before ${what}.`, {}, signal?.reason);
}
