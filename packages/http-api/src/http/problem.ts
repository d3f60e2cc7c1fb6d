import { errorCodes } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { statusOf } from "@throughline/gateway/internal";

const documentation = "https://github.com/throughline/throughline/blob/main/docs/errors.md";

/** Combines RFC 9457 with the fields of a command line error, so that both kinds of clients can read it. */
export interface Problem {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** States the wait in whole seconds. Null means that waiting does not help. */
  readonly retryAfterS: number | null;
}

/** An error may contain the address of a store and its password, which must not leave the server. */
export type Mask = (value: unknown) => unknown;

/**
 * Converts a thrown value to a problem. The message of an unknown error is left out, because it may quote the request.
 */
export function problemOf(thrown: unknown, requestId: string, mask: Mask): Problem {
  const error = ThroughlineError.isInstance(thrown)
    ? thrown
    : new ThroughlineError("INTERNAL", "The server failed to carry out the request.", { cause: thrown });
  const { code, message, remedy, retryable, outcome, details } = error;
  const own = details["status"];
  // The code also covers oversized URLs and headers, which have the statuses 414 and 431.
  const status = code === "REQUEST_TOO_LARGE" && typeof own === "number" ? own : statusOf(code);
  return {
    status,
    retryAfterS: retryAfterOf(error, status),
    body: {
      type: `${documentation}#${code.toLowerCase()}`,
      title: errorCodes[code].summary,
      status,
      detail: mask(message),
      instance: requestId,
      kind: "error",
      code,
      message: mask(message),
      remedy,
      retryable,
      outcome,
      details: mask(details),
    },
  };
}

function retryAfterOf({ details }: ThroughlineError, status: number): number | null {
  const { retryAfterMs } = details;
  if (typeof retryAfterMs === "number") return Math.max(1, Math.ceil(retryAfterMs / 1000));
  return status === 503 ? 1 : null;
}
