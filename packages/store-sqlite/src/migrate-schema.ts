import { refused } from "@throughline/core/internal";
import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { alone } from "./claim-file.ts";
import type { SqliteDriver } from "./connection.ts";
import { applicationId, type SchemaStep } from "./schema.ts";
import { isDamage } from "./sqlite-errors.ts";
import { createPrivateFile, isThere, putInPlace, removeDatabase } from "./store-file.ts";

/**
 * Brings a database to the newest step, each step in one IMMEDIATE transaction of its own, so that a migration that was
 * interrupted goes on where it stood. A database that held something is copied first.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED for a database of a newer version or other steps, which is not
 *   changed; STORE_LOCKED while another process copies it; STORE_IO when it cannot be copied
 */
export function migrateSchema(
  database: Database.Database,
  path: string,
  steps: readonly SchemaStep[],
  driver: SqliteDriver,
): void {
  const newest = steps.at(-1)?.version ?? 0;
  const from = schemaVersion(database);
  assertKnown(path, from, newest);
  assertSameSteps(
    database,
    path,
    steps.filter(({ version }) => version <= from),
  );
  if (from === newest) return;
  if (from > 0) assertVersionWhole(database, path, from);
  if (from > 0) backUp(database, path, from, driver);
  for (const step of steps) applyStep(database, path, step, newest);
  // The version has to stand in the main file too: that is where an older build looks before it opens anything.
  if (from > 0) database.pragma("wal_checkpoint(TRUNCATE)");
}

function applyStep(database: Database.Database, path: string, step: SchemaStep, newest: number): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have been faster while this one waited for the lock.
    const version = schemaVersion(database);
    assertKnown(path, version, newest);
    if (version < step.version) {
      database.exec(step.sql);
      database.prepare("INSERT INTO store_info (name, value) VALUES (?, ?)").run(checksumName(step), checksum(step));
      database.pragma(`application_id = ${applicationId}`);
      database.pragma(`user_version = ${step.version}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** A step that was changed after it ran somewhere would leave two schemas under one number. */
function assertSameSteps(database: Database.Database, path: string, steps: readonly SchemaStep[]): void {
  for (const step of steps) {
    const kept = database
      .prepare<[string], string>("SELECT value FROM store_info WHERE name = ?")
      .pluck()
      .get(checksumName(step));
    if (kept === checksum(step)) continue;
    throw refused("STORE_VERSION_UNSUPPORTED", `${path} has another schema ${step.version} than this build.`, {
      path,
      version: step.version,
    });
  }
}

/** A step that ran behind the version that the file states: that number is not what was written. */
function assertVersionWhole(database: Database.Database, path: string, version: number): void {
  const names = database.prepare<[], string>("SELECT name FROM store_info WHERE name LIKE 'schema %'").pluck().all();
  const last = Math.max(...names.map((name) => Number(name.slice("schema ".length))));
  if (last <= version) return;
  const message = `${path} states schema ${version}, and has schema ${last}: its header is damaged.`;
  throw refused("STORE_CORRUPT", message, { path, version });
}

function checksumName({ version }: SchemaStep): string {
  return `schema ${version}`;
}

function checksum({ sql }: SchemaStep): string {
  return createHash("sha256").update(sql).digest("hex");
}

/** A consistent copy beside the file, named after the version it holds. One that is there is complete, and stays. */
function backUp(database: Database.Database, path: string, version: number, driver: SqliteDriver): void {
  const copy = `${path}.v${version}.backup`;
  if (isThere(copy)) return;
  alone(`${copy}.under-way`, driver, `Another process copies ${path} before its migration.`, () => {
    // Whoever had it before may have finished it.
    if (!isThere(copy)) writeCopy(database, path, copy);
  });
}

function writeCopy(database: Database.Database, path: string, copy: string): void {
  const part = `${copy}.part`;
  try {
    // What a process that was killed has left of it is begun anew.
    removeDatabase(part);
    createPrivateFile(part);
    database.prepare("VACUUM INTO ?").run(part);
    putInPlace(part, copy);
  } catch (error) {
    removeDatabase(part);
    if (!isDamage(error) || !isWhole(database)) throw error;
    // What is wrong with the copy is nothing against the store, which must not make room for an older one therefore.
    throw refused("STORE_IO", `${path} could not be copied to ${copy} before its migration.`, { path: copy }, error);
  }
}

function isWhole(database: Database.Database): boolean {
  try {
    return database.pragma("quick_check(1)", { simple: true }) === "ok";
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

function schemaVersion(database: Database.Database): number {
  return database.pragma("user_version", { simple: true }) as number;
}

export function assertKnown(path: string, version: number, newest: number): void {
  if (version <= newest) return;
  throw refused("STORE_VERSION_UNSUPPORTED", `${path} has schema ${version}; this build knows ${newest}.`, {
    path,
    version,
    newest,
  });
}
