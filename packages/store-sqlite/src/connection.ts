import type { Finding } from "@throughline/core";
import type Database from "better-sqlite3";
import { driverError, loadDriver } from "./load-driver.ts";
import type { KnownSessions } from "./known-sessions.ts";
import type { Statements } from "./statements.ts";

/** Opens databases as better-sqlite3 does. Another build of better-sqlite3 may take its place. */
export type SqliteDriver = (
  path: string,
  options: { readonly fileMustExist?: boolean; readonly readonly?: boolean; readonly timeout?: number },
) => Database.Database;

export const defaultDriver: SqliteDriver = (path, options) => {
  const Driver = loadDriver();
  try {
    return new Driver(path, options);
  } catch (error) {
    throw driverError(error);
  }
};

export interface Connection {
  readonly database: Database.Database;
  readonly statements: Statements;
  readonly known: KnownSessions;
  /** Holds the findings about the file from its opening. */
  readonly findings: readonly Finding[];
  /** Sets whether commits wait for the disk. It must be called between transactions. */
  setDiskSync(isOn: boolean): void;
  /**
   * Checks that the path still names the open file. SQLite continues to write to a file that has lost its name, and no
   * process that opens the store finds those writes.
   * @throws {ThroughlineError} STORE_IO when the path names another file than the one that is open, or none, and
   *   STORE_FULL where a write might end the process
   */
  assertInPlace(): void;
  /** States whether this is a copy of a store that cannot be written. */
  readonly isCopy: boolean;
  /**
   * Must be called before each read.
   * @throws {ThroughlineError} STORE_READ_ONLY when the original of a copy has changed since
   */
  assertCurrent(): void;
}

export interface OpenOptions {
  readonly path: string;
  readonly create: boolean;
  readonly codecName: string | null;
  readonly driver: SqliteDriver;
  /** States whether a damaged file is replaced by its newest backup. */
  readonly recover: boolean;
}
