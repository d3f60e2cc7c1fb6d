import { refused } from "@throughline/core/internal";

/** How often tokens may ask, and how often an address may show one that is not valid. */
export interface RateLimits {
  /** Takes one request to the own API. @throws {ThroughlineError} RATE_LIMITED */
  take(tokenId: string): void;
  /** Takes one call through the gateway. @throws {ThroughlineError} RATE_LIMITED */
  takeCall(tokenId: string): void;
  /** A token without a rate from now on: that of the programs of the server's own machine. */
  exempt(tokenId: string): void;
  /** Counts a token that was refused; true when the address has shown too many of them within a minute. */
  failed(address: string): { readonly isOver: boolean; readonly retryAfterMs: number };
}

export interface RateOptions {
  readonly requestsPerMinute: number;
  readonly requestBurst: number;
  readonly failedTokensPerMinute: number;
  readonly gatewayCallsPerMinute: number;
  readonly gatewayBurst: number;
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
  const failures = new Map<string, { count: number; readonly sinceMs: number }>();
  const exempt = new Set<string>();
  const taker = (perMinute: number, burst: number): ((tokenId: string) => void) => {
    const buckets = new Map<string, Bucket>();
    const perMs = perMinute / minuteMs;
    return (tokenId) => {
      if (exempt.has(tokenId)) return;
      const now = nowMs();
      const bucket = buckets.get(tokenId) ?? { tokens: burst, atMs: now };
      bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.atMs) * perMs);
      bucket.atMs = now;
      keep(buckets, tokenId, bucket);
      if (bucket.tokens < 1) {
        const retryAfterMs = Math.ceil((1 - bucket.tokens) / perMs);
        const message = `The token sent more than ${perMinute} requests a minute.`;
        throw refused("RATE_LIMITED", message, { retryAfterMs });
      }
      bucket.tokens -= 1;
    };
  };
  return {
    take: taker(options.requestsPerMinute, options.requestBurst),
    takeCall: taker(options.gatewayCallsPerMinute, options.gatewayBurst),
    exempt: (tokenId) => void exempt.add(tokenId),
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
