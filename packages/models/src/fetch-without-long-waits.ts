import type { ChatRequest } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { withBoundedBody } from "./bounded-body.ts";

/** A server that asks for a longer wait gets no retry. */
const maxWaitMs = 60_000;
/** The SDKs wait this long without a header of the server, twice as long each time. */
const firstWaitMs = 500;
const longestUsualWaitMs = 8000;

type OnWait = NonNullable<ChatRequest["onWait"]>;

/** The SDKs pass this field of a request's `fetchOptions` to `fetch`, as they pass all others. */
const field = "throughlineOnWait";

/** Returns the options of a request of the SDK that report its waits. */
export function waitOptions({ onWait }: ChatRequest): { readonly fetchOptions?: object } {
  return onWait === undefined ? {} : { fetchOptions: { [field]: onWait } };
}

/**
 * Returns a fetch that prevents retries if the server asks to wait for more than a minute. A spent quota may ask for
 * five hours. The SDK would wait silently, and the turn would stay open. The response passes unchanged with its
 * headers, so that the caller can report when the quota resets. A shorter wait is set here and reported.
 *
 * @param maxRetries the retries of the SDK; its last attempt is followed by no wait
 */
export function fetchWithoutLongWaits(base: typeof fetch | undefined, maxRetries: number): typeof fetch {
  return async (input, init) => {
    const { [field]: onWait, ...rest } = (init ?? {}) as RequestInit & { readonly [field]?: OnWait };
    const response = withBoundedBody(await (base ?? fetch)(input, rest));
    if (response.ok) return response;
    // Both SDKs obey these headers before they apply their own rules.
    if (waitMsOf(response.headers) > maxWaitMs) return withHeader(response, "x-should-retry", "false");
    const retries = Number(new Headers(rest.headers).get("x-stainless-retry-count") ?? 0);
    if (onWait === undefined || retries >= maxRetries || !isRetried(response)) return response;
    const delayMs = Math.round(waitMsOf(response.headers) || usualWaitMs(retries));
    onWait({ delayMs, status: response.status, attempt: retries + 1 });
    return withHeader(response, "retry-after-ms", String(delayMs));
  };
}

function withHeader(response: Response, name: string, value: string): Response {
  const headers = new Headers(response.headers);
  headers.set(name, value);
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

/** The rule of both SDKs. */
function isRetried({ status, headers }: Response): boolean {
  const stated = headers.get("x-should-retry");
  if (stated === "true" || stated === "false") return stated === "true";
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** Up to a quarter less by chance, so that many sessions do not ask again at the same moment. */
function usualWaitMs(retries: number): number {
  const chance = Number.parseInt(systemRandom.uuid().slice(0, 4), 16) / 0xffff;
  return Math.min(firstWaitMs * 2 ** retries, longestUsualWaitMs) * (1 - chance / 4);
}

/**
 * Returns the wait that the headers ask for, or 0 without such a header. A date without the server's own time counts as
 * infinite, because the difference is unknown.
 */
function waitMsOf(headers: Headers): number {
  const milliseconds = Number.parseFloat(headers.get("retry-after-ms") ?? "");
  if (milliseconds > 0) return milliseconds;
  const value = headers.get("retry-after");
  if (value === null) return 0;
  const seconds = Number.parseFloat(value);
  if (!Number.isNaN(seconds)) return Math.max(0, seconds * 1000);
  const until = Date.parse(value);
  if (Number.isNaN(until)) return 0;
  const now = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(now) ? Number.POSITIVE_INFINITY : Math.max(0, until - now);
}
