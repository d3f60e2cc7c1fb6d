import { resolve } from "node:path";
import { assertKnownOptions, optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";
import { storeFactoryKinds } from "@throughline/core/store";
import type { BackupPolicy } from "./backup-keeper.ts";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";

const { callback, flag, integer, number, objectOf, oneOf, required } = optionKinds;

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
  backups: objectOf<BackupPolicy>({ everyMs: required(number({ min: 0 })), keep: integer({ min: 0 }) }),
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
  return { ...options, path: resolve(options.path) };
}
