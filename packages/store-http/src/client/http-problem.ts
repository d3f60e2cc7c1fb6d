/** The body of a failed request: RFC 9457 with the fields of a Throughline error beside them. */
export interface ProblemDocument {
  /** The HTTP status. */
  readonly status: number;
  /** The code of the Throughline error, such as `SESSION_NOT_FOUND`. */
  readonly code: string;
  /** What happened, as a sentence; the code when the server gives none. */
  readonly message: string;
  /** What to do next; empty when the server gives none. */
  readonly remedy: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** For writes: `not-applied`, or `unknown` when the same request must be repeated to learn it. */
  readonly outcome: "not-applied" | "unknown" | null;
  /** What the error names, by field; empty when the server gives none. */
  readonly details: Readonly<Record<string, unknown>>;
  /** The id of the request, as the server's log names it. */
  readonly instance: string | null;
}

/** An answer of the server that is not a success. */
export class HttpProblem extends Error {
  /** The HTTP status. */
  readonly status: number;
  /** Null when the answer is not a problem document, for example from a proxy. */
  readonly problem: ProblemDocument | null;
  /** How long the server asks to wait before the next attempt, in milliseconds; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(status: number, problem: ProblemDocument | null, retryAfterMs: number | null) {
    super(problem?.message ?? `The server answered with status ${status}.`);
    this.name = "HttpProblem";
    this.status = status;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Reads the failure that a response states. The body is consumed. */
export async function problemOf(response: Response): Promise<HttpProblem> {
  const seconds = response.headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
  const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json") === true;
  // The connection may break inside the body: the status is all that is known then.
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
