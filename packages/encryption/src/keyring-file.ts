import { chmodSync, closeSync, fsyncSync, linkSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import type { DatabaseSync } from "node:sqlite";
import { quote, refused } from "@throughline/core/internal";
import { builtinSqlite } from "@throughline/core/internal/node";
import { keyringError, withKeyringErrors } from "./keyring-error.ts";
import { secretBytes } from "./secret-bytes.ts";

/** Marks the file as a keyring: the letters TLKR. */
const applicationId = 0x54_4c_4b_52;
const schemaVersion = 1;

const schema = `
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE slots (
  kind TEXT PRIMARY KEY, method TEXT NOT NULL, salt BLOB NOT NULL,
  n INTEGER NOT NULL, r INTEGER NOT NULL, p INTEGER NOT NULL, wrapped BLOB NOT NULL) STRICT;
CREATE TABLE data_keys (
  number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, namespace TEXT, agent_id TEXT, session_id TEXT,
  created_at_ms INTEGER NOT NULL, destroyed_at_ms INTEGER, reason TEXT) STRICT;
CREATE INDEX data_keys_of_place ON data_keys (namespace, agent_id, session_id) WHERE destroyed_at_ms IS NULL;
CREATE TABLE secrets (number INTEGER PRIMARY KEY, wrapped BLOB NOT NULL) STRICT;
CREATE TABLE erasures (
  session_id TEXT NOT NULL, namespace TEXT NOT NULL, agent_id TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (namespace, agent_id, session_id)) STRICT;
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion};
`;

/**
 * Deleted content is overwritten, and a commit waits for the disk, also for the entry of its journal in the folder. The
 * journal is a file of its own that each commit removes, because a log would keep what was overwritten.
 */
const settings = `
PRAGMA busy_timeout = 5000;
PRAGMA secure_delete = ON;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA synchronous = EXTRA;
PRAGMA fullfsync = ON;
`;

/** Identifies a file under its name. */
export interface FileIdentity {
  readonly device: bigint;
  readonly inode: bigint;
}

export interface KeyringFile {
  readonly path: string;
  readonly database: DatabaseSync;
  /**
   * Checks that the path still names the open file. SQLite continues to write to a file that has lost its name, and a key
   * in it would be lost.
   * @throws {ThroughlineError} KEYRING_IO
   */
  assertInPlace(): void;
}

/**
 * Creates a keyring that is whole as soon as it has its name. A process that is killed meanwhile leaves a file with
 * `.new-` in its name, which can be deleted.
 * @throws {ThroughlineError} KEYRING_EXISTS, KEYRING_IO
 */
export function createKeyringFile(path: string, fill: (database: DatabaseSync) => void): void {
  withKeyringErrors(path, () => {
    if (identityOf(path) !== null) throw keyringExists(path);
    const made = `${path}.new-${secretBytes(6).toString("hex")}`;
    try {
      closeSync(openSync(made, "wx", 0o600));
      const database = openDatabase(made);
      try {
        database.exec(`BEGIN IMMEDIATE; ${schema}`);
        fill(database);
        database.exec("COMMIT");
      } finally {
        database.close();
      }
      publish(made, path);
    } finally {
      rmSync(made, { force: true });
      rmSync(`${made}-journal`, { force: true });
    }
  });
}

/** A link gives the name only when no other file has it. */
function publish(made: string, path: string): void {
  try {
    linkSync(made, path);
  } catch (error) {
    throw (error as { readonly code?: string }).code === "EEXIST" ? keyringExists(path) : error;
  }
  // Windows has no flush of a folder.
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** @throws {ThroughlineError} KEYRING_NOT_FOUND, KEYRING_DAMAGED, KEYRING_IO, CAPABILITY_UNSUPPORTED */
export function openKeyringFile(path: string): KeyringFile {
  return withKeyringErrors(path, () => {
    const opened = identityOf(path);
    // SQLite would create an empty file.
    if (opened === null)
      throw refused("KEYRING_NOT_FOUND", `There is no keyring at ${quote(path)}; the data stay encrypted.`, { path });
    const database = openDatabase(path);
    try {
      assertKeyring(database, path);
      closeToOthers(path);
    } catch (error) {
      database.close();
      throw error;
    }
    return {
      path,
      database,
      assertInPlace() {
        const now = identityOf(path);
        if (now?.device === opened.device && now.inode === opened.inode) return;
        throw refused("KEYRING_IO", `The keyring ${quote(path)} was replaced or removed while it was open.`, { path });
      },
    };
  });
}

/**
 * Removes the rights of other users, which a copied keyring may have. With them another user could destroy keys.
 * @throws {ThroughlineError} KEYRING_IO when the file belongs to another user
 */
function closeToOthers(path: string): void {
  if (process.platform === "win32") return;
  const { mode, uid } = statSync(path);
  if ((mode & 0o077) === 0) return;
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    // No user can write to a file system that is read-only.
    if (code === "EROFS") return;
    // FAT keeps no rights of files: its mount gives each file the same ones, and the owner cannot change them.
    if (code === "EPERM" && uid === process.geteuid?.()) return;
    if (code !== "EPERM") throw error;
    throw refused("KEYRING_IO", `Other users can open the keyring ${quote(path)}, and it belongs to one of them.`, {
      path,
    });
  }
}

function openDatabase(path: string): DatabaseSync {
  const sqlite = builtinSqlite();
  if (sqlite === undefined)
    throw refused("CAPABILITY_UNSUPPORTED", "This Node has no node:sqlite, which keyrings need.");
  const database = new sqlite.DatabaseSync(path);
  try {
    database.exec(settings);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function assertKeyring(database: DatabaseSync, path: string): void {
  const number = (name: string): number =>
    Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
  const version = number("user_version");
  if (number("application_id") === applicationId && version === schemaVersion) return;
  const isNewer = number("application_id") === applicationId && version > schemaVersion;
  const what = isNewer ? `is a keyring of version ${version}, which this version cannot read` : "is not a keyring";
  throw refused("KEYRING_DAMAGED", `The file ${quote(path)} ${what}.`, { path, version });
}

function identityOf(path: string): FileIdentity | null {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return { device: dev, inode: ino };
  } catch (error) {
    if ((error as { readonly code?: string }).code === "ENOENT") return null;
    throw keyringError(error, path);
  }
}

function keyringExists(path: string): Error {
  return refused("KEYRING_EXISTS", `There is a file at ${quote(path)} already. Nothing was changed.`, { path });
}
