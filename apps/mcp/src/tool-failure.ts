import { ThroughlineError, type ErrorCode } from "@throughline/core";

/** A refusal of a call in words for the model that made it. */
export class CallRefusal extends Error {
  override readonly name = "CallRefusal";
}

/** Codes whose words are about the call. Of any other the model gets the code: the message may name files and hosts. */
const aboutTheCall: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "SESSION_NOT_FOUND",
  "CURSOR_INVALID",
  "RECORD_TOO_LARGE",
  "FORBIDDEN",
]);

/** What a model gets of a failure. `isReported`: somebody has to look at the error itself. */
export function failureText(error: unknown): { readonly text: string; readonly isReported: boolean } {
  if (error instanceof CallRefusal) return { text: error.message, isReported: false };
  if (!ThroughlineError.isInstance(error)) return { text: "The server failed.", isReported: true };
  if (aboutTheCall.has(error.code)) return { text: error.message, isReported: false };
  const again = error.retryable ? " The same call may succeed later." : "";
  return { text: `The store could not answer: ${error.code}.${again}`, isReported: true };
}
