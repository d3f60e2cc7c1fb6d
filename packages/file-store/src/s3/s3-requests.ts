import { createHash } from "node:crypto";
import type { Clock, RandomSource } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { abortedBefore } from "@throughline/core/internal";
import { AwsV4Signer } from "aws4fetch";
import { textOf } from "./read-xml.ts";
import { createLimit } from "./silence-limit.ts";

/** Holds the keys of an account. */
export interface S3Credentials {
  /** States the id of the access key. */
  readonly accessKeyId: string;
  /** States the secret of the access key. */
  readonly secretAccessKey: string;
  /** States the token of temporary keys. @default none */
  readonly sessionToken?: string | undefined;
}

export interface RequestsOptions {
  /** States the address of the bucket, without a slash at its end. */
  readonly bucketUrl: string;
  readonly region: string;
  readonly credentials: () => Promise<S3Credentials>;
  readonly fetch: typeof globalThis.fetch;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly clock: Clock;
  readonly random: RandomSource;
}

export interface S3Request {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** States the key of the object; "" is the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Describes an answer that has arrived whole. */
export interface S3Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** States whether an attempt before this one may have been carried out. */
  readonly isRepeat: boolean;
}

/** Sends signed requests to one bucket. */
export interface S3Requests {
  /**
   * Sends a request whose answer is short, again after each failure that may pass. Statuses of `accepted` are answers;
   * the others are errors.
   * @throws {ThroughlineError} STORE_UNREACHABLE, ABORTED
   */
  send(request: S3Request, accepted?: readonly number[]): Promise<S3Answer>;
  /**
   * Sends a request once and returns the response with its body unread. `given` is the caller's own signal.
   * @throws {Failure}; {ThroughlineError} ABORTED
   */
  open(request: S3Request, given: AbortSignal | undefined, accepted: readonly number[]): Promise<Response>;
  /** Creates the failure of a connection that broke off. @throws {ThroughlineError} ABORTED */
  brokenOff(cause: unknown, given: AbortSignal | undefined): Failure;
  /** Waits before the next attempt; throws the error when there is none. */
  retry(failure: Failure, attempt: number, signal: AbortSignal | undefined): Promise<void>;
}

/** Holds an error, and whether the next attempt may succeed. */
export class Failure {
  readonly error: ThroughlineError;
  readonly isPassing: boolean;
  readonly waitMs: number;

  constructor(error: ThroughlineError, isPassing: boolean, waitMs: number = 0) {
    this.error = error;
    this.isPassing = isPassing;
    this.waitMs = waitMs;
  }
}

const firstWaitMs = 100;
const mostWaitMs = 10_000;
const passing: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);
/** Such an error has status 400 or 403, and another request succeeds. */
const passingCodes: ReadonlySet<string> = new Set([
  "RequestTimeout",
  "SlowDown",
  "InternalError",
  "ServiceUnavailable",
]);

export function createRequests(options: RequestsOptions): S3Requests {
  const { timeoutMs, clock, random, retries, bucketUrl } = options;
  const requests: S3Requests = {
    async send(request, accepted = [200, 204]) {
      for (let attempt = 0; ; attempt += 1) {
        const limit = createLimit(clock, timeoutMs, request.signal);
        try {
          const response = await requests.open({ ...request, signal: limit.signal }, request.signal, accepted);
          return { ...(await readAnswer(options, response)), isRepeat: attempt > 0 };
        } catch (cause) {
          const failure = cause instanceof Failure ? cause : requests.brokenOff(cause, request.signal);
          await requests.retry(failure, attempt, request.signal);
        } finally {
          limit.end();
        }
      }
    },
    async open(request, given, accepted) {
      try {
        const response = await sendOnce(options, request);
        if (accepted.includes(response.status)) return response;
        throw failureOf(bucketUrl, response, await response.text());
      } catch (cause) {
        throw cause instanceof Failure ? cause : requests.brokenOff(cause, given);
      }
    },
    brokenOff: (cause, given) => brokenOff(bucketUrl, cause, given),
    async retry({ error, isPassing, waitMs }, attempt, signal) {
      if (!isPassing || attempt >= retries) throw error;
      const jitter = 0.5 + random.uint32() / 2 ** 32;
      await clock.sleep(Math.min(mostWaitMs, Math.max(waitMs, firstWaitMs * 2 ** attempt * jitter)), signal);
    },
  };
  return requests;
}

async function readAnswer(options: RequestsOptions, response: Response): Promise<Omit<S3Answer, "isRepeat">> {
  const text = await response.text();
  const { status, headers } = response;
  // A copy, and the end of an upload in parts, may fail after the status was sent.
  if (status === 200 && text.slice(0, 300).includes("<Error>")) throw failureOf(options.bucketUrl, response, text);
  return { status, headers, text };
}

async function sendOnce(options: RequestsOptions, request: S3Request): Promise<Response> {
  const { bucketUrl, region, credentials, fetch } = options;
  const { method, key, query = {}, headers = {}, body, signal } = request;
  const url = new URL(key === "" ? bucketUrl : `${bucketUrl}/${key.split("/").map(encodeURIComponent).join("/")}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  // The storage compares the bytes with this hash, so a body that was cut or changed is refused.
  const hash = createHash("sha256")
    .update(body ?? "")
    .digest("hex");
  const { accessKeyId, secretAccessKey, sessionToken } = await credentials();
  const signed = await new AwsV4Signer({
    method,
    url: url.href,
    headers: { ...headers, "x-amz-content-sha256": hash },
    body: body ?? null,
    service: "s3",
    region,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  }).sign();
  return fetch(signed.url, {
    method,
    headers: signed.headers,
    redirect: "error",
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

function failureOf(bucketUrl: string, { status, headers }: Response, xml: string): Failure {
  const code = textOf(xml, "Code") || String(status);
  const isPassing = passing.has(status) || passingCodes.has(code) || status === 200;
  const remedy = isPassing
    ? undefined
    : "Check the bucket, the region, the keys and their rights: reading, writing, listing and deleting below the prefix.";
  const error = new ThroughlineError(
    "STORE_UNREACHABLE",
    `The object storage at ${bucketUrl} refused a request: ${code}.`,
    {
      outcome: "not-applied",
      details: { url: bucketUrl, status, code },
      retryable: isPassing,
      ...(remedy === undefined ? {} : { remedy }),
    },
  );
  return new Failure(error, isPassing, 1000 * Number(headers.get("retry-after") ?? 0) || 0);
}

/** @throws {ThroughlineError} ABORTED */
function brokenOff(bucketUrl: string, cause: unknown, signal: AbortSignal | undefined): Failure {
  if (signal?.aborted === true) throw abortedBefore("the object storage answered", signal);
  // An error of the caller's own, such as one of a function for keys, is none of the network.
  if (ThroughlineError.isInstance(cause)) throw cause;
  const message = `The object storage at ${bucketUrl} cannot be reached, or the connection to it broke off.`;
  return new Failure(
    new ThroughlineError("STORE_UNREACHABLE", message, { outcome: "unknown", details: { url: bucketUrl }, cause }),
    true,
  );
}
