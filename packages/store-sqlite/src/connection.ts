import type { Finding } from "@throughline/core";
import type Database from "better-sqlite3";
import { driverError, loadDriver } from "./load-driver.ts";
import type { KnownSessions } from "./known-sessions.ts";
import type { Statements } from "./statements.ts";

/** Opens databases as better-sqlite3 does; another build of it may take its place. */
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

/** One open database with what is prepared on it. */
export interface Connection {
  readonly database: Database.Database;
  readonly statements: Statements;
  readonly known: KnownSessions;
  /** What was noticed about the file while it was opened. */
  readonly findings: readonly Finding[];
  /** Whether commits wait for the disk. Changed between transactions only. */
  setDiskSync(isOn: boolean): void;
  /**
   * SQLite goes on writing to a file that has lost its name, and nobody who opens the store finds what it wrote.
   * @throws {ThroughlineError} STORE_IO when the path names another file than the one that is open, or none, and
   *   STORE_FULL where a write might end the process
   */
  assertInPlace(): void;
  /** True when what is read is a copy, because the store cannot be written. */
  readonly isCopy: boolean;
  /** Before each read. @throws {ThroughlineError} STORE_READ_ONLY when what is read is a copy of what has changed since */
  assertCurrent(): void;
}

export interface OpenOptions {
  readonly path: string;
  readonly create: boolean;
  /** Name of the codec; null without one. */
  readonly codecName: string | null;
  readonly driver: SqliteDriver;
  /** Whether a file that is damaged makes room for its newest backup. */
  readonly recover: boolean;
}
