import { isFields } from "./json-object.ts";
import type { SessionEntry } from "./session-entry.ts";

/**
 * Adds up the usage of a session, call by call. It is plain JSON that the caller stores. `Occupancy` states how full
 * the window is; a spend does not.
 */
export interface Spend {
  /** Counts the calls. */
  readonly calls: number;
  /** Counts prompt tokens that no cache served. */
  readonly input: number;
  /** Counts the tokens that models wrote. */
  readonly output: number;
  /** Counts prompt tokens that a cache served. */
  readonly cacheRead: number;
  /** Counts the tokens written to a cache. */
  readonly cacheWrite: number;
  /** Counts the tokens written to a cache for one hour. They are part of `cacheWrite`. */
  readonly cacheWrite1h: number;
  /** Counts the reasoning tokens. They are part of `output`. */
  readonly reasoning: number;
  /** Holds the cost in US dollars. Null as soon as the cost of one call is unknown. */
  readonly costUsd: number | null;
}

/** Holds a spend without calls, to which `addSpend` adds. */
export const nothingSpent: Spend = {
  calls: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  reasoning: 0,
  costUsd: 0,
};

const countNames = ["calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning"] as const;

/**
 * Reads what the turns of a session used and cost from its entry. Null when no turn was counted, and for a value that
 * Throughline did not write.
 */
export function readSpend({ throughline }: SessionEntry): Spend | null {
  const spend = isFields(throughline) ? throughline["spend"] : null;
  if (!isFields(spend)) return null;
  const isNumber = (name: string): boolean => Number.isFinite(spend[name]);
  const isSpend = countNames.every(isNumber) && (spend["costUsd"] === null || isNumber("costUsd"));
  // The cast is safe: every field was checked.
  return isSpend && spend["calls"] !== 0 ? (spend as unknown as Spend) : null;
}
