import { withBoundedBody } from "./bounded-body.ts";

/** A server that asks for a longer wait gets no retry. */
const maxWaitMs = 60_000;

/**
 * Returns a fetch that prevents retries if the server asks to wait for more than a minute. A spent quota may ask for
 * five hours. The SDK would wait silently, and the turn would stay open. The response passes unchanged with its
 * headers, so that the caller can report when the quota resets.
 */
export function fetchWithoutLongWaits(base?: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = withBoundedBody(await (base ?? fetch)(input, init));
    if (response.ok || waitMsOf(response.headers) <= maxWaitMs) return response;
    const headers = new Headers(response.headers);
    // Both SDKs obey this header before they apply their own rules, so it prevents the retry.
    headers.set("x-should-retry", "false");
    const { status, statusText } = response;
    return new Response(response.body, { status, statusText, headers });
  };
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
  if (!Number.isNaN(seconds)) return seconds * 1000;
  const until = Date.parse(value);
  if (Number.isNaN(until)) return 0;
  const now = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(now) ? Number.POSITIVE_INFINITY : until - now;
}
