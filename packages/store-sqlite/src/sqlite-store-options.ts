import { resolve } from "node:path";
import * as core from "@throughline/core";
import { assertKnownOptions, optionKinds, storeFactoryKinds, type StoreLimits } from "@throughline/core/internal";
import type { OptionKind, OptionTable } from "@throughline/core/internal";
import type { SqliteDriver } from "./connection.ts";
import type { SearchFill } from "./index-filler.ts";

/** Options of `createSqliteStore`. */
export interface SqliteStoreOptions {
  /** The database file. Its folder is made when it is missing. */
  readonly path: string;
  /** False: a file that does not exist is STORE_NOT_FOUND. @default true */
  readonly create?: boolean;
  /** Around payloads and entries. Its name is kept in the store: another codec is refused. @default none */
  readonly codec?: core.PayloadCodec;
  /** The time that the store stamps. @default the system's clock */
  readonly clock?: core.Clock;
  /** Source of record ids. @default ids of this process */
  readonly ids?: core.RecordIds;
  /** Used wherever the store draws at random. @default the system's randomness */
  readonly random?: core.RandomSource;
  /** Receives findings, changes of sessions, and records. What it throws is ignored. @default no listener */
  readonly onEvent?: core.SessionEventListener;
  /** What a write gets that does not ask. @default "disk" */
  readonly defaultDurability?: core.Durability;
  /** How long an operation waits for other processes, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number;
  /** Limits that differ from the default. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits>;
  /**
   * Whether a file that can no longer be read makes room for the newest backup beside it (`<name>.….backup`); it is kept,
   * and a finding says so. Without a backup nothing is touched. @default true
   */
  readonly recover?: boolean;
  /** When the indexes of words and of children are filled: behind the turns, or only when somebody searches. @default "background" */
  readonly searchFill?: SearchFill;
  /** Opens the database; another build of better-sqlite3, or one that fails on purpose. @default better-sqlite3 */
  readonly driver?: SqliteDriver;
}

const { callback, flag, number, oneOf, required } = optionKinds;

const path: OptionKind = {
  expected: "the path of a file",
  accepts: (value) => typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\0"),
};

/** The kinds of the options of `createSqliteStore`. */
export const sqliteStoreTable: OptionTable<SqliteStoreOptions> = {
  ...storeFactoryKinds,
  path: required(path),
  create: flag,
  defaultDurability: oneOf(["none", "process", "disk"]),
  lockTimeoutMs: number({ min: 0 }),
  recover: flag,
  searchFill: oneOf(["background", "on-demand"]),
  driver: callback,
};

/**
 * The options, with the file by its whole path: the process may go to another folder while the store is open.
 *
 * @param call the name of the factory
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 */
export function checkedOptions<Options extends Pick<SqliteStoreOptions, "path">>(
  call: string,
  options: Options,
  table: OptionTable<Options>,
): Options {
  assertKnownOptions<Options>(call, options, table, "options", "CONFIG_INVALID");
  // SQLite's own names for what is no file: taken as a path they would make a file that is called so.
  if (/^(?::memory:|file:)/i.test(options.path))
    throw new core.ThroughlineError(
      "CONFIG_INVALID",
      `${call}: \`path\` must be the path of a file; ${JSON.stringify(options.path.slice(0, 200))} is SQLite's own notation.`,
      {
        outcome: "not-applied",
        remedy:
          "Pass the path of a file, or call createMemoryStore() of @throughline/store-memory for a store in memory.",
      },
    );
  return { ...options, path: resolve(options.path) };
}
