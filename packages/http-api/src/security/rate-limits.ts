import { refused } from "@throughline/core/internal";

/** The limit per address slows down guessing of tokens. */
export interface RateLimits {
  /**
   * Counts one request. @param ownPerMinute the limit of the token itself; null: none. Default: that of the server
   * @throws {ThroughlineError} RATE_LIMITED
   */
  take(tokenId: string, ownPerMinute?: number | null): void;
  /** Exempts a token from the limits. The programs of the server's machine use such a token. */
  exempt(tokenId: string): void;
  /** Counts a refused token. `isOver` is true when the address sent too many of them within a minute. */
  failed(address: string): { readonly isOver: boolean; readonly retryAfterMs: number };
}

export interface RateOptions {
  readonly requestsPerMinute: number;
  readonly requestBurst: number;
  /** @default no limit */
  readonly failedTokensPerMinute?: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const minuteMs = 60_000;
/** Limits the memory for tokens and addresses; the least recently used one is dropped first. */
const mostBuckets = 10_000;

/** @param nowMs a monotonic clock in milliseconds, because a change of the system time must not affect limits */
export function createRateLimits(
  { requestsPerMinute, requestBurst, failedTokensPerMinute = Infinity }: RateOptions,
  nowMs: () => number,
): RateLimits {
  const failures = new Map<string, { count: number; readonly sinceMs: number }>();
  const exempt = new Set<string>();
  const buckets = new Map<string, Bucket>();
  const burstShare = requestBurst / requestsPerMinute;
  return {
    take(tokenId, ownPerMinute = requestsPerMinute) {
      if (ownPerMinute === null || exempt.has(tokenId)) return;
      const now = nowMs();
      const perMs = ownPerMinute / minuteMs;
      const burst = ownPerMinute === requestsPerMinute ? requestBurst : Math.max(1, ownPerMinute * burstShare);
      const bucket = buckets.get(tokenId) ?? { tokens: burst, atMs: now };
      bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.atMs) * perMs);
      bucket.atMs = now;
      keep(buckets, tokenId, bucket);
      if (bucket.tokens < 1) {
        const retryAfterMs = Math.ceil((1 - bucket.tokens) / perMs);
        const message = `The token sent more than ${ownPerMinute} requests a minute.`;
        throw refused("RATE_LIMITED", message, { retryAfterMs });
      }
      bucket.tokens -= 1;
    },
    exempt: (tokenId) => void exempt.add(tokenId),
    failed(address) {
      const now = nowMs();
      const earlier = failures.get(address);
      const window = earlier === undefined || now - earlier.sinceMs >= minuteMs ? { count: 0, sinceMs: now } : earlier;
      window.count += 1;
      keep(failures, address, window);
      return {
        isOver: window.count > failedTokensPerMinute,
        retryAfterMs: Math.max(1, minuteMs - (now - window.sinceMs)),
      };
    },
  };
}

function keep<Value>(map: Map<string, Value>, name: string, value: Value): void {
  map.delete(name);
  map.set(name, value);
  if (map.size <= mostBuckets) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
