import { ThroughlineError } from "@throughline/core";
import type Database from "better-sqlite3";
import { applicationId, createSchemaText, schemaVersion } from "./schema.ts";

/**
 * Creates the schema in an empty database, in one IMMEDIATE transaction. A database that has the schema stays as it is.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED for another version of the schema
 */
export function createSchema(database: Database.Database, path: string): void {
  if (versionOf(database) === schemaVersion) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created the schema while this process waited for the lock.
    const version = versionOf(database);
    if (version !== 0) assertSchemaVersion(path, version);
    else {
      database.exec(createSchemaText);
      database.pragma(`application_id = ${applicationId}`);
      database.pragma(`user_version = ${schemaVersion}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(database: Database.Database): number {
  return database.pragma("user_version", { simple: true }) as number;
}

/**
 * Reports a file with another version of the schema. No step leads from one version to another, so the file is not
 * opened at all.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED
 */
export function assertSchemaVersion(path: string, version: number): void {
  if (version === schemaVersion) return;
  const message = `${path} has version ${version} of the database schema, and this release of Throughline reads version ${schemaVersion}; the file was not changed.`;
  throw new ThroughlineError("STORE_VERSION_UNSUPPORTED", message, {
    outcome: "not-applied",
    details: { path, version, known: schemaVersion },
    remedy: version > schemaVersion ? newerRemedy : otherRemedy,
  });
}

const newerRemedy = "Upgrade Throughline to the release that wrote the file.";
const otherRemedy =
  "Open the file with the release that wrote it and export its sessions, then import them into a new store. If no other release wrote it, its header is damaged: restore a backup.";
