import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import Database from "better-sqlite3";

/** Opens databases as better-sqlite3 does; another build of it may take its place. */
export type SqliteDriver = (
  path: string,
  options: { readonly fileMustExist?: boolean; readonly readonly?: boolean; readonly timeout?: number },
) => Database.Database;

export const defaultDriver: SqliteDriver = (path, options) => {
  assertNodeVersion(process.versions.node);
  return new Database(path, options);
};

/** In an older Node the library ends the process with a segmentation fault. @throws {ThroughlineError} STORE_UNSUPPORTED */
export function assertNodeVersion(version: string): void {
  if (Number.parseInt(version, 10) >= 22) return;
  throw new ThroughlineError("STORE_UNSUPPORTED", `The SQLite store needs Node 22.18 or newer; this is ${version}.`, {
    remedy: "Install a newer Node and run the program again.",
    outcome: "not-applied",
    details: { version },
  });
}
