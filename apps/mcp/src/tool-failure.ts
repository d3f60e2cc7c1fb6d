import { ThroughlineError, type ErrorCode } from "@throughline/core";

/** Carries a message that the model may read. */
export class CallRefusal extends Error {
  override readonly name = "CallRefusal";
}

/**
 * Messages of these codes concern the call alone. Other messages may name files and hosts, so the model gets only the
 * code.
 */
const aboutTheCall: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "SESSION_NOT_FOUND",
  "CURSOR_INVALID",
  "RECORD_TOO_LARGE",
  "FORBIDDEN",
]);

/** `isReported` is true if an operator must see the error itself. */
export function failureText(error: unknown): { readonly text: string; readonly isReported: boolean } {
  if (error instanceof CallRefusal) return { text: error.message, isReported: false };
  if (!ThroughlineError.isInstance(error)) return { text: "The server failed.", isReported: true };
  if (aboutTheCall.has(error.code)) return { text: error.message, isReported: false };
  const again = error.retryable ? " The same call may succeed later." : "";
  return { text: `The store could not answer: ${error.code}.${again}`, isReported: true };
}
