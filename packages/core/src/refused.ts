import type { ErrorCode } from "./error-codes.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** A refusal: an error that says nothing was changed. */
export function refused(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): ThroughlineError {
  return new ThroughlineError(code, message, { outcome: "not-applied", details, cause });
}
