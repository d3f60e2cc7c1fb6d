import {
  assertKnownOptions,
  type OptionKind,
  optionKinds,
  type OptionTable,
  refused,
  storeFactoryKinds,
} from "@throughline/core/internal";
import type { LayoutName } from "./layout.ts";
import { parsePostgresUrl } from "./postgres-url.ts";
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

/** Timers of Node and PostgreSQL hold at most this, about 24 days. A longer timer of Node fires at once. */
const longestMs = 2 ** 31 - 1;

/** A larger number of tables takes longer to open than all their records take to read. */
const mostPartitions = 1024;

const { flag, integer, number, objectWith, oneOf, secret, text } = optionKinds;

const milliseconds = number({ min: 0 });

const countOrNoLimit: OptionKind = {
  expected: "a whole number from 0 on, or Infinity",
  accepts: (value) => value === Infinity || (Number.isSafeInteger(value) && Number(value) >= 0),
};

export const postgresStoreTable: OptionTable<PostgresStoreOptions> = {
  ...storeFactoryKinds,
  url: secret(text),
  pool: objectWith("connect"),
  schema: text,
  migrate: flag,
  partitions: integer({ min: 1, max: mostPartitions }),
  defaultDurability: oneOf(["none", "process", "disk"]),
  maxConnections: integer({ min: 1 }),
  maxWaiting: countOrNoLimit,
  timeoutMs: milliseconds,
  connectTimeoutMs: milliseconds,
  lockTimeoutMs: milliseconds,
  prepare: flag,
  notify: flag,
  pollMs: milliseconds,
  rowSecurity: flag,
  layout: oneOf(["plain", "tenant"]),
};

export type CheckedOptions = PostgresStoreOptions & Readonly<Record<keyof typeof defaults, number>>;

/**
 * Returns the options with defaults in place of missing numbers.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 */
export function checkedOptions(options: PostgresStoreOptions): CheckedOptions {
  assertKnownOptions<PostgresStoreOptions>(
    "createPostgresStore",
    options,
    postgresStoreTable,
    "options",
    "CONFIG_INVALID",
  );
  const {
    timeoutMs = defaults.timeoutMs,
    connectTimeoutMs = defaults.connectTimeoutMs,
    lockTimeoutMs = defaults.lockTimeoutMs,
    pollMs = defaults.pollMs,
    maxConnections = defaults.maxConnections,
    maxWaiting = defaults.maxWaiting,
    partitions = defaults.partitions,
  } = options;
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

export function schemaOf({ schema, url, pool }: PostgresStoreOptions): string {
  const named = url === undefined || pool !== undefined ? null : parsePostgresUrl(url).schema;
  return schema ?? named ?? "throughline";
}

export function layoutOf({ layout, url, pool }: PostgresStoreOptions): LayoutName | undefined {
  const named = url === undefined || pool !== undefined ? null : parsePostgresUrl(url).layout;
  return layout ?? named ?? undefined;
}

export function quoteSchema(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name)) return `"${name}"`;
  throw refused("CONFIG_INVALID", "The name of a schema is small letters, digits and '_', at most 63.", {
    schema: name,
  });
}

/** Returns the limit of the pool. Every pool of pg states it, and another one counts as large as pg's default. */
export function maxConnectionsOf({ pool, maxConnections }: CheckedOptions): number {
  return pool === undefined ? maxConnections : (pool.options?.max ?? defaults.maxConnections);
}
