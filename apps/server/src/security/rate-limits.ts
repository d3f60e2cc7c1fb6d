import { refused } from "@throughline/core/store";

/** How often tokens may ask, and how often an address may show one that is not valid. */
export interface RateLimits {
  /** Takes one request. @throws {ThroughlineError} RATE_LIMITED */
  take(tokenId: string): void;
  /** Counts a token that was refused; true when the address has shown too many of them within a minute. */
  failed(address: string): { readonly isOver: boolean; readonly retryAfterMs: number };
}

export interface RateOptions {
  readonly requestsPerMinute: number;
  readonly requestBurst: number;
  readonly failedTokensPerMinute: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const minuteMs = 60_000;
/** The most tokens and addresses that are counted; the oldest goes first. */
const mostBuckets = 10_000;

/** @param nowMs milliseconds of a clock that nobody sets */
export function createRateLimits(options: RateOptions, nowMs: () => number): RateLimits {
  const requests = new Map<string, Bucket>();
  const failures = new Map<string, { count: number; readonly sinceMs: number }>();
  const perMs = options.requestsPerMinute / minuteMs;
  return {
    take(tokenId) {
      const now = nowMs();
      const bucket = requests.get(tokenId) ?? { tokens: options.requestBurst, atMs: now };
      bucket.tokens = Math.min(options.requestBurst, bucket.tokens + (now - bucket.atMs) * perMs);
      bucket.atMs = now;
      keep(requests, tokenId, bucket);
      if (bucket.tokens < 1) {
        const retryAfterMs = Math.ceil((1 - bucket.tokens) / perMs);
        const message = `The token sent more than ${options.requestsPerMinute} requests a minute.`;
        throw refused("RATE_LIMITED", message, { retryAfterMs });
      }
      bucket.tokens -= 1;
    },
    failed(address) {
      const now = nowMs();
      const earlier = failures.get(address);
      const window = earlier === undefined || now - earlier.sinceMs >= minuteMs ? { count: 0, sinceMs: now } : earlier;
      window.count += 1;
      keep(failures, address, window);
      return {
        isOver: window.count > options.failedTokensPerMinute,
        retryAfterMs: Math.max(1, minuteMs - (now - window.sinceMs)),
      };
    },
  };
}

/** Puts an entry at the end, and takes the oldest away when there are too many. */
function keep<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.delete(name);
  map.set(name, value);
  if (map.size <= mostBuckets) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
