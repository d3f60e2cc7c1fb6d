import { refused } from "@throughline/core/internal";
import type { EventStream, StreamEnd } from "./event-stream.ts";

/** Is a stream of any kind that is open to a client. */
type OpenStream = Pick<EventStream, "ping" | "bye">;

export interface StreamLimits {
  readonly streams: number;
  readonly streamsPerToken: number;
}

export interface OpenStreams {
  /** Reserves capacity for a stream before it opens. @throws {ThroughlineError} RATE_LIMITED */
  reserve(tokenId: string): void;
  release(tokenId: string, end: StreamEnd): void;
  add(stream: OpenStream): void;
  remove(stream: OpenStream, tokenId: string, end: StreamEnd): void;
  readonly count: number;
  /** Ends every stream with a `bye` event, because the node is stopping. */
  bye(retryMs: number): void;
  close(): void;
}

const pingEveryMs = 15_000;
/**
 * Spreads the pings of one interval over this many ticks, so that thousands of streams do not block the event loop at
 * once.
 */
const parts = 15;

export function createOpenStreams(limits: StreamLimits, onEnd: (end: StreamEnd) => void): OpenStreams {
  const perToken = new Map<string, number>();
  const groups = Array.from({ length: parts }, () => new Set<OpenStream>());
  let count = 0;
  let opened = 0;
  let part = 0;
  const tick = (): void => {
    part = (part + 1) % parts;
    for (const stream of groups[part] ?? []) stream.ping();
  };
  const timer = setInterval(tick, pingEveryMs / parts);
  timer.unref();
  const release = (tokenId: string, end: StreamEnd): void => {
    count -= 1;
    const left = (perToken.get(tokenId) ?? 1) - 1;
    if (left === 0) perToken.delete(tokenId);
    else perToken.set(tokenId, left);
    onEnd(end);
  };
  return {
    reserve(tokenId) {
      const own = perToken.get(tokenId) ?? 0;
      if (own >= limits.streamsPerToken || count >= limits.streams) {
        const limit = own >= limits.streamsPerToken ? limits.streamsPerToken : limits.streams;
        const message = `There are ${limit} event streams already, which is the limit.`;
        throw refused("RATE_LIMITED", message, { limit, retryAfterMs: pingEveryMs });
      }
      count += 1;
      perToken.set(tokenId, own + 1);
    },
    release,
    add(stream) {
      opened += 1;
      groups[opened % parts]?.add(stream);
    },
    remove(stream, tokenId, end) {
      for (const group of groups) group.delete(stream);
      release(tokenId, end);
    },
    get count() {
      return count;
    },
    bye(retryMs) {
      for (const group of groups) for (const stream of group) stream.bye(retryMs);
    },
    close() {
      clearInterval(timer);
    },
  };
}
