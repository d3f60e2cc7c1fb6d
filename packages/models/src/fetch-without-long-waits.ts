import { withBoundedBody } from "./bounded-body.ts";

/** How long a server may have the SDK wait before it asks again. */
const maxWaitMs = 60_000;

/**
 * A fetch that does not retry if the server asks to wait for more than a minute. A spent quota may ask for five hours.
 * The SDK would wait that long without a sign, and the turn would stay open. The answer is handed over as the error it
 * is, with its headers, so that whoever asked can say until when.
 */
export function fetchWithoutLongWaits(base?: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = withBoundedBody(await (base ?? fetch)(input, init));
    if (response.ok || waitMsOf(response.headers) <= maxWaitMs) return response;
    const headers = new Headers(response.headers);
    // Both SDKs obey it, before any rule of their own.
    headers.set("x-should-retry", "false");
    const { status, statusText } = response;
    return new Response(response.body, { status, statusText, headers });
  };
}

/** What the headers ask for; 0 without a word, endless for a date where the answer does not say what time it is there. */
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
