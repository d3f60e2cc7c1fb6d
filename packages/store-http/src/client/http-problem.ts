/** Describes a failed request: an RFC 9457 document with the fields of a Throughline error. */
export interface ProblemDocument {
  /** States the HTTP status. */
  readonly status: number;
  /** States the code of the Throughline error, such as `SESSION_NOT_FOUND`. */
  readonly code: string;
  /** Says what happened, in one sentence; holds the code when the server sends no message. */
  readonly message: string;
  /** Says what to do next; empty when the server sends no remedy. */
  readonly remedy: string;
  /** States whether the same request may succeed later. */
  readonly retryable: boolean;
  /** States the outcome of a write: `not-applied`, or `unknown` when only a repeat of the request can tell. */
  readonly outcome: "not-applied" | "unknown" | null;
  /** Holds the details of the error, by field; empty when the server sends none. */
  readonly details: Readonly<Record<string, unknown>>;
  /** States the request id that the server's log uses, or null. */
  readonly instance: string | null;
}

/** Reports that the server answered with a status other than success. */
export class HttpProblem extends Error {
  /** States the HTTP status. */
  readonly status: number;
  /** Holds the problem document; null when the answer has none, for example from a proxy. */
  readonly problem: ProblemDocument | null;
  /** States how long the server asks to wait before the next attempt, in milliseconds, or null. */
  readonly retryAfterMs: number | null;

  constructor(status: number, problem: ProblemDocument | null, retryAfterMs: number | null) {
    super(problem?.message ?? `The server answered with status ${status}.`);
    this.name = "HttpProblem";
    this.status = status;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Reads the failure from a response, and consumes its body. */
export async function problemOf(response: Response): Promise<HttpProblem> {
  const seconds = response.headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
  const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json") === true;
  // The connection may break inside the body; then only the status is available.
  const body: unknown = await (isProblem ? response.json() : response.body?.cancel())?.catch(() => null);
  return new HttpProblem(response.status, documentOf(body, response.status), retryAfterMs);
}

function documentOf(body: unknown, status: number): ProblemDocument | null {
  const { code, message, remedy, retryable, outcome, details, instance } = (body ?? {}) as Record<string, unknown>;
  if (typeof code !== "string") return null;
  const textOf = <Other>(value: unknown, other: Other): string | Other => (typeof value === "string" ? value : other);
  return {
    status,
    code,
    message: textOf(message, code),
    remedy: textOf(remedy, ""),
    retryable: retryable === true,
    outcome: outcome === "not-applied" || outcome === "unknown" ? outcome : null,
    details: typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
    instance: textOf(instance, null),
  };
}
