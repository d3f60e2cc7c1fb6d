import type { Clock } from "@throughline/core";
import { createLimit } from "./silence-limit.ts";
import { Failure, type S3Requests } from "./s3-requests.ts";

interface ReadContext {
  readonly requests: S3Requests;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

interface KeyRange {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly signal: AbortSignal | undefined;
  readonly missing: () => Error;
}

/** Yields a range of an object. A connection that breaks off, or is silent for too long, is opened where it ended. */
export async function* readKey(context: ReadContext, range: KeyRange): AsyncGenerator<Uint8Array> {
  const { requests } = context;
  let attempt = 0;
  for (let at = range.from; at < range.to;) {
    const limit = createLimit(context.clock, context.timeoutMs, range.signal);
    try {
      const pieces = await openRange(requests, range, { at, limited: limit.signal });
      while (at < range.to) {
        const piece = (await pieces()).subarray(0, range.to - at);
        at += piece.byteLength;
        attempt = 0;
        yield piece;
        limit.touch();
      }
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      await requests.retry(failure, attempt++, range.signal);
    } finally {
      // It also ends the response when the caller leaves.
      limit.end();
    }
  }
}

/** Returns a function that reads the next piece of the answer. @throws {Failure} */
async function openRange(
  requests: S3Requests,
  { key, to, signal, missing }: KeyRange,
  { at, limited }: { readonly at: number; readonly limited: AbortSignal },
): Promise<() => Promise<Uint8Array>> {
  const headers = { range: `bytes=${at}-${to - 1}` };
  const response = await requests.open({ method: "GET", key, headers, signal: limited }, signal, [200, 206, 404, 416]);
  if (response.status === 404 || response.status === 416) {
    await response.body?.cancel();
    throw missing();
  }
  // A service that knows no ranges sends the object from its beginning.
  if (response.status === 200 && at > 0) throw requests.brokenOff(new Error("the range was ignored"), signal);
  const reader = response.body?.getReader();
  return async () => {
    try {
      const next = await reader?.read();
      if (next?.value !== undefined) return next.value;
    } catch (cause) {
      throw requests.brokenOff(cause, signal);
    }
    throw requests.brokenOff(new Error("the answer ended too early"), signal);
  };
}
