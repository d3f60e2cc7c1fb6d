import { resolve } from "node:path";
import { assertMilliseconds } from "@throughline/core/internal";
import { quote, refused } from "@throughline/core/store";
import type { SqliteStoreOptions } from "./sqlite-store-options.ts";

type Checked = Pick<SqliteStoreOptions, "path" | "lockTimeoutMs" | "backups">;

/**
 * The options, with the file by its whole path: the process may go to another folder while the store is open.
 * @throws {ThroughlineError} CONFIG_INVALID for one that is out of its range
 */
export function checkedOptions<Options extends Checked>(options: Options): Options {
  const { lockTimeoutMs = 0, backups = { everyMs: 0 } } = options;
  const { everyMs, keep = 1 } = backups;
  assertMilliseconds({ lockTimeoutMs, "backups.everyMs": everyMs });
  if (!Number.isSafeInteger(keep) || keep < 0)
    throw refused("CONFIG_INVALID", `backups.keep is a whole number, not ${String(keep)}.`, {
      option: "backups.keep",
      value: keep,
    });
  return { ...options, path: fileOf(options.path) };
}

function fileOf(given: unknown): string {
  if (typeof given !== "string" || given === "" || !given.isWellFormed())
    throw refused("CONFIG_INVALID", `The path is that of a file, not ${quote(String(given))}.`, { path: given });
  return resolve(given);
}
