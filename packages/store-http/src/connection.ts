import { errorCodes } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Clock, ErrorCode, RandomSource, SessionRef } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";
import { HttpProblem } from "./client/http-problem.ts";
import { sessionPath } from "./client/session-path.ts";
import type { HttpClient, HttpRequest } from "./client/http-client.ts";

interface WriteOperation<Answer> {
  readonly signal?: AbortSignal | undefined;
  /**
   * Is called when the server refuses a repeat whose earlier attempt may have been applied. Resolves to that attempt's
   * answer, or null.
   */
  readonly findApplied?: () => Promise<Answer | null>;
}

export interface ConnectionOptions {
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly timeoutMs: number;
  readonly retries: number;
}

interface Answered<Answer> {
  readonly status: number;
  readonly body: Answer;
  /** Is true when an earlier attempt of this operation may have been applied. */
  readonly isRepeat: boolean;
}

export interface Connection {
  readonly client: HttpClient;
  /** Sends a request that changes nothing. @throws {ThroughlineError} the server's, STORE_UNREACHABLE, ABORTED */
  read<Answer>(request: HttpRequest, signal?: AbortSignal): Promise<Answer>;
  /** Sends a request that writes. Every error it throws states an outcome. */
  write<Answer>(request: HttpRequest, operation?: WriteOperation<Answer>): Promise<Answered<Answer>>;
}

const firstWaitMs = 50;

export function createConnection({ client, clock, random, timeoutMs, retries }: ConnectionOptions): Connection {
  const ask = async <Answer>(
    request: HttpRequest,
    isWrite: boolean,
    { signal, findApplied }: WriteOperation<Answer>,
  ): Promise<Answered<Answer>> => {
    let deadline = createDeadline(clock, timeoutMs);
    let either = deadline.with(signal);
    let isRepeat = false;
    let waitedMs = 0;
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          const response = await client.send({ ...request, signal: either });
          return { status: response.status, body: (await response.json()) as Answer, isRepeat };
        } catch (thrown) {
          if (signal?.aborted === true) throw aborted(isWrite, thrown);
          const failure = readFailure(thrown, client.url);
          if (!failure.isRepeatable) {
            const body = isRepeat ? await findApplied?.() : null;
            if (body != null) return { status: 200, body, isRepeat };
            throw failure.error;
          }
          isRepeat ||= failure.error.outcome === "unknown";
          // The server has not started this request and asks to wait. Such a wait uses neither an attempt nor the
          // timeout.
          if (failure.askedMs !== null && waitedMs < mostWaitedMs) {
            const askedMs = failure.askedMs * (1 + random.uint32() / 2 ** 32 / 2);
            deadline.end();
            await clock.sleep(askedMs, signal);
            waitedMs += askedMs;
            deadline = createDeadline(clock, timeoutMs);
            either = deadline.with(signal);
            attempt--;
            continue;
          }
          const jitter = 0.5 + random.uint32() / 2 ** 32;
          const waitMs = Math.max(failure.retryAfterMs ?? 0, firstWaitMs * 2 ** attempt * jitter);
          const isLast = attempt >= retries || deadline.isOver || !(await slept(clock, waitMs, either));
          if (isLast) throw withOutcome(failure.error, isWrite, isRepeat);
        }
      }
    } finally {
      deadline.end();
    }
  };
  return {
    client,
    read: async <Answer>(request: HttpRequest, signal?: AbortSignal) =>
      (await ask<Answer>(request, false, { signal })).body,
    write: (request, operation = {}) => ask(request, true, operation),
  };
}

/** Limits how long one operation waits in total because the server limits its rate. */
const mostWaitedMs = 300_000;

interface Deadline {
  readonly isOver: boolean;
  /** Returns a signal that aborts when the time is over, or with `signal`. */
  with(signal: AbortSignal | undefined): AbortSignal;
  end(): void;
}

function createDeadline(clock: Clock, ms: number): Deadline {
  const [ended, overdue] = [new AbortController(), new AbortController()];
  void clock.sleep(ms, ended.signal).then(
    () => overdue.abort(),
    () => undefined,
  );
  return {
    get isOver() {
      return overdue.signal.aborted;
    },
    with: (signal) => (signal === undefined ? overdue.signal : AbortSignal.any([signal, overdue.signal])),
    end: () => ended.abort(),
  };
}

async function slept(clock: Clock, waitMs: number, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(waitMs, signal).then(
    () => true,
    () => false,
  );
}

/** These errors occur before a byte of the request is sent, so the server cannot have applied it. */
const neverSent: ReadonlySet<unknown> = new Set(
  "ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH UND_ERR_CONNECT_TIMEOUT".split(" "),
);

/** A proxy, or a server that is busy, answers with these statuses; the same request may succeed later. */
const passing: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

interface RequestFailure {
  readonly error: ThroughlineError;
  readonly isRepeatable: boolean;
  readonly retryAfterMs: number | null;
  /**
   * States how long the server asks to wait because of its rate limit; null for other failures. The server has not
   * started such a request.
   */
  readonly askedMs: number | null;
}

export function readFailure(thrown: unknown, url: string): RequestFailure {
  if (!(thrown instanceof HttpProblem)) {
    const outcome = isNeverSent(thrown) ? "not-applied" : "unknown";
    const error = unreachable(url, `cannot be reached: ${reasonOf(thrown)}`, outcome, thrown);
    return { error, isRepeatable: true, retryAfterMs: null, askedMs: null };
  }
  const { status, problem, retryAfterMs } = thrown;
  const isPassing = passing.has(status);
  if (problem === null) {
    const why = `answered with status ${status} and no problem document, as a proxy or another program does`;
    const error = unreachable(url, why, status < 500 ? "not-applied" : "unknown", thrown);
    return { error, isRepeatable: isPassing, retryAfterMs, askedMs: null };
  }
  const { code, message, outcome, remedy } = problem;
  const isKnown = Object.hasOwn(errorCodes, code);
  const error = new ThroughlineError(isKnown ? (code as ErrorCode) : "INTERNAL", message, {
    details: isKnown ? problem.details : { ...problem.details, serverCode: code },
    cause: thrown,
    ...(outcome === null ? {} : { outcome }),
    ...(remedy === "" ? {} : { remedy }),
  });
  const isPutOff = code === "RATE_LIMITED" || (code === "STORE_OVERLOADED" && outcome === "not-applied");
  const askedMs = isPutOff ? retryAfterMs : null;
  return { error, isRepeatable: isPassing || outcome === "unknown", retryAfterMs, askedMs };
}

function unreachable(url: string, why: string, outcome: WriteOutcome, cause: unknown): ThroughlineError {
  return new ThroughlineError("STORE_UNREACHABLE", `The server ${url} ${why}.`, { details: { url }, outcome, cause });
}

/** Checks the causes too: fetch wraps the socket's error, or one error for each address it tried. */
function isNeverSent(thrown: unknown): boolean {
  if (typeof thrown !== "object" || thrown === null) return false;
  const { code, cause, errors } = thrown as { readonly code?: unknown; readonly cause?: unknown; errors?: unknown };
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isNeverSent);
  return neverSent.has(code) || isNeverSent(cause);
}

function reasonOf(thrown: unknown): string {
  const inner: unknown = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  return inner instanceof Error ? inner.message || inner.name : String(inner);
}

function withOutcome(error: ThroughlineError, isWrite: boolean, mayBeApplied: boolean): ThroughlineError {
  const { code, message, details, remedy, outcome, cause } = error;
  const known = !isWrite
    ? {}
    : { outcome: mayBeApplied ? ("unknown" as const) : (outcome ?? ("not-applied" as const)) };
  return new ThroughlineError(code, message, { details, remedy, cause, ...known });
}

function aborted(isWrite: boolean, cause: unknown): ThroughlineError {
  const message = "The signal was aborted before the server answered.";
  return new ThroughlineError("ABORTED", message, { cause, ...(isWrite ? { outcome: "unknown" } : {}) });
}

export function sessionRequest(
  { namespace, agentId, key, archiveId }: SessionRef,
  below: string,
  request: Omit<HttpRequest, "path" | "namespace"> = {},
): HttpRequest {
  const query = { agent: agentId, archive: archiveId, ...request.query };
  return { ...request, namespace, query, path: sessionPath(key) + below };
}
