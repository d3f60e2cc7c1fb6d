import { constants, copyFile, mkdtemp, rm, stat } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type * as nodeSqlite from "node:sqlite";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { causeText, quote } from "@throughline/core/internal";
import { builtinSqlite } from "@throughline/core/internal/node";
import { openSource } from "./source-files.ts";

/** Reads another program's database without changing it or the files beside it. */
export interface ForeignDatabase {
  readonly path: string;
  /** Returns an empty set when the table does not exist. */
  columns(table: string): ReadonlySet<string>;
  all(sql: string, ...values: readonly (string | number)[]): readonly DatabaseRow[];
  /** Yields row by row, because a table may be larger than memory. */
  iterate(sql: string, ...values: readonly (string | number)[]): Iterable<DatabaseRow>;
  close(): Promise<void>;
}

export type DatabaseRow = Readonly<Record<string, unknown>>;

const statPath = promisify(stat);
const copyPath = promisify(copyFile);
const makeFolder = promisify(mkdtemp) as (prefix: string) => Promise<string>;
const removePath = promisify(rm);

const magic = "SQLite format 3\u0000";

/**
 * Checks the first bytes for SQLite's signature. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE,
 * PATH_UNSAFE
 */
export async function isDatabaseFile(path: string): Promise<boolean> {
  const source = await openSource(path);
  try {
    for await (const chunk of source.chunks({ toBytes: Math.min(source.sizeBytes, magic.length) })) {
      return Buffer.from(chunk).toString("latin1") === magic;
    }
    return false;
  } finally {
    await source.close();
  }
}

/**
 * Opens a database for reading. If all data is in its file and no process has it open, SQLite opens it as immutable. An
 * ordinary read-only connection would create two files beside it.
 *
 * Otherwise a copy in a temporary folder is opened. Opening a database that has a log writes into the log's index,
 * `-shm`, even for reading.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE
 */
export async function openForeignDatabase(path: string): Promise<ForeignDatabase> {
  const sizes = await Promise.all(besides.map((ending) => sizeOf(path + ending)));
  if (sizes.every((size) => size === 0)) return wrap(path, connect(path, { isImmutable: true }), null);
  const folder = await makeFolder(join(tmpdir(), "throughline-import-"));
  try {
    const copy = join(folder, "source.sqlite");
    await copyDatabase(path, copy);
    return wrap(path, connect(copy, { isImmutable: false }), folder);
  } catch (error) {
    await removePath(folder, { recursive: true, force: true });
    throw unreadable(path, error);
  }
}

/**
 * SQLite creates these files beside a database: the log, the journal, and the log's index while the database is open.
 */
const besides = ["-wal", "-journal", "-shm"] as const;
const mostCopies = 5;

/**
 * Copies a database that its program may be writing. The file comes first, then the log, which holds every page that
 * moved into the file meanwhile. The copy restarts if the log was restarted, or the file was written without a log.
 */
async function copyDatabase(path: string, copy: string): Promise<void> {
  for (let attempt = 1; attempt <= mostCopies; attempt++) {
    const before = await stateOf(path);
    try {
      for (const ending of ["", "-wal", "-journal"]) {
        if (ending !== "" && (await sizeOf(path + ending)) === 0) await removePath(copy + ending, { force: true });
        else await copyPath(path + ending, copy + ending, constants.COPYFILE_FICLONE);
      }
    } catch (error) {
      // The program has just closed the database and removed the file.
      if (!isMissing(error)) throw error;
      continue;
    }
    if (before === (await stateOf(path))) return;
  }
  throw new Error("its program kept writing it while it was copied");
}

/** Captures the state that must not change while a database is copied. */
async function stateOf(path: string): Promise<string> {
  const journal = await versionOf(`${path}-journal`);
  const header = await logHeaderOf(`${path}-wal`);
  return header === "" ? `no log, ${journal}, ${await versionOf(path)}` : `${header}, ${journal}`;
}

/**
 * Returns the first bytes of a log, which contain two numbers that change when the log restarts; empty without a log.
 */
async function logHeaderOf(path: string): Promise<string> {
  const log = await openSource(path).catch((error: unknown) => {
    if (hasErrorCode(error, "FILE_NOT_FOUND")) return null;
    throw error;
  });
  if (log === null) return "";
  try {
    const toBytes = Math.min(log.sizeBytes, logHeaderBytes);
    const parts: Uint8Array[] = [];
    for await (const chunk of log.chunks({ toBytes })) parts.push(new Uint8Array(chunk));
    return Buffer.concat(parts).toString("hex");
  } finally {
    await log.close();
  }
}

const logHeaderBytes = 32;

async function versionOf(path: string): Promise<string> {
  try {
    const { size, mtimeMs, ino } = await statPath(path);
    return size === 0 ? "none" : `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if (isMissing(error)) return "none";
    throw unreadable(path, error);
  }
}

function wrap(path: string, database: nodeSqlite.DatabaseSync, folder: string | null): ForeignDatabase {
  const guard = <Result>(act: () => Result): Result => {
    try {
      return act();
    } catch (error) {
      throw unreadable(path, error);
    }
  };
  let isOpen = true;
  return {
    path,
    columns: (table) =>
      guard(() => {
        const rows = database.prepare("SELECT name FROM pragma_table_info(?)").all(table);
        return new Set(rows.map(({ name }) => String(name)));
      }),
    all: (sql, ...values) => guard(() => database.prepare(sql).all(...values)),
    *iterate(sql, ...values) {
      const rows = guard(() => database.prepare(sql).iterate(...values));
      for (;;) {
        const { done, value } = guard(() => rows.next());
        if (done === true) return;
        yield value as DatabaseRow;
      }
    },
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      database.close();
      if (folder !== null) await removePath(folder, { recursive: true, force: true });
    },
  };
}

function connect(path: string, { isImmutable }: { readonly isImmutable: boolean }): nodeSqlite.DatabaseSync {
  const library = builtinSqlite();
  if (library === undefined) throw unreadable(path, new Error("this Node has no node:sqlite"));
  const { DatabaseSync } = library;
  try {
    const url = new URL(`${pathToFileURL(path).href}${isImmutable ? "?immutable=1" : ""}`);
    const database = new DatabaseSync(url, { readOnly: true, enableForeignKeyConstraints: false });
    try {
      database.exec("PRAGMA busy_timeout = 2000; PRAGMA trusted_schema = OFF; PRAGMA query_only = ON");
      // SQLite reads the file here first, so a file that is no database fails at this point.
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await statPath(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw unreadable(path, error);
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === "ENOENT";
}

function unreadable(path: string, cause: unknown): ThroughlineError {
  if (ThroughlineError.isInstance(cause)) return cause;
  const why = causeText(cause);
  return new ThroughlineError("FILE_UNREADABLE", `The database ${quote(path)} cannot be read: ${why}.`, {
    details: { path },
    cause,
    remedy: "Close the program it belongs to and try again; the file was not changed.",
  });
}
