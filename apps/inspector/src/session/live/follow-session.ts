import { ApiError, apiPath, isAbort, request } from "../../api.ts";
import type { SessionPlace } from "../../router.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";
import { readEvents, type StreamEvent } from "./event-reader.ts";

/** Says how far the page has heard of a session. */
export interface Heard {
  readonly sessionId: string;
  readonly seq: number;
}

interface FollowOptions {
  readonly place: SessionPlace;
  /** Returns where the stream is opened. Null opens it with the next record. */
  readonly heard: () => Heard | null;
  readonly signal: AbortSignal;
  readonly onEvent: (event: StreamEvent) => void;
  /** Is called when the stream broke off or went silent, before it is opened again. */
  readonly onLost: () => void;
}

/** The server sends a ping each 15 s. */
const silenceMs = 45_000;
const leastPauseMs = 500;
const mostPauseMs = 10_000;

/** Follows a session until the signal, and opens the stream again whenever it ends. */
export async function followSession(options: FollowOptions): Promise<void> {
  const { place, heard, signal, onLost } = options;
  let pauseMs = leastPauseMs;
  let hasPartials = true;
  while (!signal.aborted) {
    try {
      const from = heard();
      const path = apiPath(sessionPath(place, "/events"), {
        ...placeQuery(place),
        after: from?.seq,
        session: from?.sessionId,
        partial: hasPartials || null,
      });
      await readOnce(path, options, () => (pauseMs = leastPauseMs));
    } catch (error) {
      if (signal.aborted) return;
      // Some stores keep no text of running replies.
      if (error instanceof ApiError && error.code === "CAPABILITY_UNSUPPORTED") hasPartials = false;
      // A token that ran out does not become valid again, and a server counts the attempts with one.
      else if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return onLost();
      else if (!(error instanceof ApiError) && !isAbort(error) && !isBroken(error)) throw error;
    }
    if (signal.aborted) return;
    onLost();
    await pause(pauseMs, signal);
    pauseMs = Math.min(mostPauseMs, pauseMs * 2);
  }
}

/** A connection that breaks off is a TypeError of the reader. */
function isBroken(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

async function readOnce(path: string, { signal, onEvent }: FollowOptions, onHeard: () => void): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    const response = await request(path, { signal: AbortSignal.any([signal, silence.signal]) });
    if (response.body === null) return;
    for await (const event of readEvents(response.body)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), silenceMs);
      // A stream that ends behind its greeting each time, as at a record that cannot be read, is opened less and less often.
      if (event.name !== "hello") onHeard();
      onEvent(event);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Ends early when the machine is online again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = (): void => resolve();
  signal.addEventListener("abort", end, { once: true });
  addEventListener("online", end, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    removeEventListener("online", end);
  });
}
