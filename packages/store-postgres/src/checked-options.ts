import { assertMilliseconds } from "@throughline/core/internal";
import { refused } from "@throughline/core/store";
import type { PostgresStoreOptions } from "./store-options.ts";

const defaults = {
  timeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  lockTimeoutMs: 10_000,
  pollMs: 1000,
  maxConnections: 10,
  maxWaiting: 1000,
  partitions: 16,
} as const;

/** What a timer can hold, and PostgreSQL's own: some three weeks. Beyond it a timer of Node's is over at once. */
const longestMs = 2 ** 31 - 1;

/** So many tables take longer to open than all their records. */
const mostPartitions = 1024;

export type CheckedOptions = PostgresStoreOptions & Readonly<Record<keyof typeof defaults, number>>;

/**
 * The options with the numbers that were left out.
 * @throws {ThroughlineError} CONFIG_INVALID for one that is out of its range
 */
export function checkedOptions(options: PostgresStoreOptions): CheckedOptions {
  const {
    timeoutMs = defaults.timeoutMs,
    connectTimeoutMs = defaults.connectTimeoutMs,
    lockTimeoutMs = defaults.lockTimeoutMs,
    pollMs = defaults.pollMs,
    maxConnections = defaults.maxConnections,
    maxWaiting = defaults.maxWaiting,
    partitions = defaults.partitions,
  } = options;
  assertMilliseconds({ timeoutMs, connectTimeoutMs, lockTimeoutMs, pollMs });
  assertWhole("maxConnections", maxConnections, 1, Infinity);
  assertWhole("partitions", partitions, 1, mostPartitions);
  if (maxWaiting !== Infinity) assertWhole("maxWaiting", maxWaiting, 0, Infinity);
  return {
    ...options,
    timeoutMs: Math.min(timeoutMs, longestMs),
    connectTimeoutMs: Math.min(connectTimeoutMs, longestMs),
    lockTimeoutMs: Math.min(lockTimeoutMs, longestMs),
    pollMs: Math.min(pollMs, longestMs),
    maxConnections,
    maxWaiting,
    partitions,
  };
}

function assertWhole(option: string, value: unknown, least: number, most: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return;
  const range = most === Infinity ? `from ${least} on` : `from ${least} to ${most}`;
  throw refused("CONFIG_INVALID", `${option} is a whole number ${range}, not ${String(value)}.`, { option, value });
}
