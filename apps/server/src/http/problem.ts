import { errorCodes } from "@throughline/core/internal";
import { type ErrorCode, ThroughlineError } from "@throughline/core";

/** Maps codes to HTTP statuses. A code that is missing here means status 500. */
const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  INPUT_INVALID: 400,
  KEY_INVALID: 400,
  KEY_AGENT_MISMATCH: 400,
  AGENT_ID_INVALID: 400,
  NAMESPACE_INVALID: 400,
  SESSION_ID_INVALID: 400,
  RECORD_INVALID: 400,
  CURSOR_INVALID: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  ORIGIN_REFUSED: 403,
  SEND_DENIED: 403,
  SESSION_NOT_FOUND: 404,
  RECORD_NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  METHOD_REFUSED: 405,
  REQUEST_TIMEOUT: 408,
  APPEND_CONFLICT: 409,
  SESSION_BUSY: 409,
  TURN_FENCED: 409,
  LEASE_LOST: 409,
  SESSION_EXISTS: 409,
  SESSION_ARCHIVED: 409,
  SESSION_PROTECTED: 409,
  SESSION_AMBIGUOUS: 409,
  RECORD_ID_TAKEN: 409,
  ID_CASE_COLLISION: 409,
  IDEMPOTENCY_EXPIRED: 409,
  RECORD_FROM_NEWER_VERSION: 409,
  REVISION_CONFLICT: 412,
  REQUEST_TOO_LARGE: 413,
  RECORD_TOO_LARGE: 413,
  BATCH_TOO_LARGE: 413,
  MEDIA_TYPE_UNSUPPORTED: 415,
  UPGRADE_REFUSED: 426,
  HOST_REFUSED: 421,
  IDEMPOTENCY_MISMATCH: 422,
  CONTEXT_OVERFLOW: 422,
  SUMMARY_REJECTED: 422,
  PRECONDITION_REQUIRED: 428,
  RATE_LIMITED: 429,
  CAPABILITY_UNSUPPORTED: 501,
  MODEL_FAILED: 502,
  SUMMARY_FAILED: 502,
  UPSTREAM_UNREACHABLE: 502,
  STORE_LOCKED: 503,
  STORE_UNREACHABLE: 503,
  STORE_OVERLOADED: 503,
  STORE_READ_ONLY: 503,
  STORE_CLOSED: 503,
  SUMMARIZER_PAUSED: 503,
  SERVER_DRAINING: 503,
  STORE_FULL: 507,
};

export function statusOf(code: ErrorCode): number {
  return statuses[code] ?? 500;
}

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
