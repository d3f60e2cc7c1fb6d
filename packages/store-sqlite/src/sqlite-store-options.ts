import { resolve } from "node:path";
import * as core from "@throughline/core";
import { assertKnownOptions, optionKinds, storeFactoryKinds, type StoreLimits } from "@throughline/core/internal";
import type { OptionKind, OptionTable } from "@throughline/core/internal";
import type { SqliteDriver } from "./connection.ts";
import type { SearchFill } from "./index-filler.ts";

/** Holds the options of `createSqliteStore`. */
export interface SqliteStoreOptions {
  /** Names the database file. A missing folder is created. */
  readonly path: string;
  /** Sets whether a missing file is created. With false it is STORE_NOT_FOUND. @default true */
  readonly create?: boolean | undefined;
  /** Encodes payloads and entries. The store keeps the name of the codec and refuses another one. @default none */
  readonly codec?: core.PayloadCodec | undefined;
  /** Gives the time that the store stamps. @default the system's clock */
  readonly clock?: core.Clock | undefined;
  /** Creates record ids. @default ids of this process */
  readonly ids?: core.RecordIds | undefined;
  /** Gives the store its random numbers. @default the system's randomness */
  readonly random?: core.RandomSource | undefined;
  /** Receives findings, changes of sessions, and records. Errors that it throws are ignored. @default no listener */
  readonly onEvent?: core.SessionEventListener | undefined;
  /** Sets the durability of a write that names none. @default "disk" */
  readonly defaultDurability?: core.Durability | undefined;
  /** Limits how long an operation waits for other processes, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number | undefined;
  /** Replaces single limits. @default core's `defaultStoreLimits` */
  readonly limits?: Partial<StoreLimits> | undefined;
  /**
   * Sets whether a file that can no longer be read is replaced by the newest backup beside it (`<name>.….backup`). The
   * file is kept, and a finding reports it. Without a backup nothing changes.
   * @default true
   */
  readonly recover?: boolean | undefined;
  /**
   * Sets when the indexes of words and of children are filled: after the turns, or only for a search.
   * @default "background"
   */
  readonly searchFill?: SearchFill | undefined;
  /** Opens the database: another build of better-sqlite3, or one that fails on purpose. @default better-sqlite3 */
  readonly driver?: SqliteDriver | undefined;
}

const { callback, flag, number, oneOf, required } = optionKinds;

const path: OptionKind = {
  expected: "the path of a file",
  accepts: (value) => typeof value === "string" && value !== "" && value.isWellFormed() && !value.includes("\0"),
};

/** Describes the kinds of the options of `createSqliteStore`. */
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
 * Checks the options, and returns them with the absolute path of the file, because the process may change its folder
 * while the store is open.
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
  // SQLite gives these names a meaning of its own. Resolved as paths, they would create a file with such a name.
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
