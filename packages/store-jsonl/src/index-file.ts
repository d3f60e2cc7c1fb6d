import type * as nodeSqlite from "node:sqlite";
import { inOneThread } from "@throughline/core/internal/node";
import { folderOf } from "./file-work.ts";
import type { Files } from "./files.ts";
import { resultCode, sqlite, sqliteCodes } from "./sqlite-library.ts";

/**
 * Holds an open index file. No other code of this process may open the file, because closing such a descriptor drops
 * SQLite's locks.
 */
export interface IndexFile {
  readonly database: nodeSqlite.DatabaseSync;
  /** Shows whether the file was replaced under its name, because then this handle reads an outdated index. */
  readonly identity: string;
}

/**
 * Explains why an index is not open. `unusable`: damaged, of another program, or of a newer version. `outdated`: of an
 * older version, or of another file, store or codec, for example after a copy of the whole store. `unavailable`: it
 * cannot be opened at this moment.
 */
export type OpenedIndex = IndexFile | "missing" | "unusable" | "outdated" | "unavailable";

/** These ASCII codes of "THLI" distinguish the store's file from another program's. */
const applicationId = 0x54484c49;
const schemaVersion = 2;
/** A transaction takes a few milliseconds. After this wait the operation continues without the index. */
const busyTimeoutMs = 20;

/**
 * Up to this size, about 2,000 sessions, the index is checked completely when it is opened, because that takes only 3
 * ms.
 */
const maxCheckedBytes = 2 * 1024 * 1024;

export class DamagedIndex extends Error {}

/** Limits how long other processes wait for one transaction, because each row takes time. */
export const rowsPerTransaction = 500;

const schema = `
  CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE sessions (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    key_order BLOB NOT NULL,
    archived INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    file_name TEXT NOT NULL,
    former_name TEXT,
    line TEXT NOT NULL,
    folded TEXT,
    summary TEXT,
    seen TEXT
  );
  CREATE INDEX sessions_by_time ON sessions (archived, updated_ms DESC, key_order, id);
  CREATE INDEX sessions_by_key ON sessions (archived, key_order, id);
  CREATE INDEX sessions_by_letters ON sessions (id COLLATE NOCASE);
  CREATE INDEX sessions_unseen ON sessions (place) WHERE seen IS NULL;
  CREATE TABLE keyed (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL, key TEXT NOT NULL, at_ms INTEGER NOT NULL, value TEXT NOT NULL,
    UNIQUE (id, key)
  );
  CREATE INDEX keyed_by_session ON keyed (id);
  CREATE TABLE writing (
    id TEXT NOT NULL, writer TEXT NOT NULL, since_ms INTEGER NOT NULL, PRIMARY KEY (id, writer)
  ) WITHOUT ROWID;
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
`;

/** Opens the index, and creates it if `create` is set. It throws no error, because the store works without an index. */
export function openIndexFile(
  files: Files,
  path: string,
  { create, isCoded }: { readonly create: boolean; readonly isCoded: boolean },
): OpenedIndex {
  const opened = openOwnFile(files, path, { create, timeoutMs: busyTimeoutMs });
  if (typeof opened === "string") return opened;
  const { database, identity, sizeBytes } = opened;
  try {
    const madeFor = `${identity} ${isCoded ? "coded" : "plain"}`;
    if (isEmpty(database)) makeTables(database, madeFor);
    const version = versionOf(database);
    const isCurrent = version === schemaVersion && stateOf(database, "made-for") === madeFor;
    // SQLite detects only some damage by itself. A session that it fails to find would look as if it never existed.
    const isWhole = !isCurrent || sizeBytes > maxCheckedBytes || isIntact(database);
    if (isCurrent && isWhole) return opened;
    database.close();
    if (!isWhole) return "unusable";
    return version !== null && version <= schemaVersion ? "outdated" : "unusable";
  } catch (error) {
    if (database.isOpen) database.close();
    return isDamage(error) ? "unusable" : "unavailable";
  }
}

/** Opens a database that only its owner may read, and creates an empty one if `create` is set. It throws no error. */
export function openOwnFile(
  files: Files,
  path: string,
  { create, timeoutMs }: { readonly create: boolean; readonly timeoutMs: number },
): (IndexFile & { readonly sizeBytes: number }) | "missing" | "unusable" | "unavailable" {
  let database: nodeSqlite.DatabaseSync | null = null;
  try {
    // This rejects links in the path, which SQLite would follow.
    files.realPath(folderOf(path));
    if (files.facts(path) === null) {
      if (!create) return "missing";
      // SQLite would create a file that others can read. This descriptor is closed before any lock on the file exists.
      inOneThread(() => files.close(files.open(path, "create")));
    }
    const facts = files.facts(path);
    // SQLite opens an unwritable file read-only, and its transactions then exclude no process.
    if (facts?.kind !== "file" || !files.isWritable(path) || !areFiles(files, path)) return "unavailable";
    const opened = new (sqlite().DatabaseSync)(path, { timeout: timeoutMs });
    database = opened;
    // With secure_delete no free page keeps purged content.
    inOneThread(() => opened.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON"));
    return { database, identity: facts.identity, sizeBytes: facts.sizeBytes };
  } catch (error) {
    if (database?.isOpen === true) database.close();
    return isDamage(error) ? "unusable" : "unavailable";
  }
}

/** Deletes a database that can be made again. */
export function removeDatabase(files: Files, path: string): void {
  for (const each of [`${path}-wal`, `${path}-shm`, path]) files.remove(each);
}

/** Checks the files that SQLite opens beside a database. A named pipe with such a name would block it forever. */
function areFiles(files: Files, path: string): boolean {
  return ["-journal", "-wal", "-shm"].every((suffix) => (files.facts(`${path}${suffix}`)?.kind ?? "file") === "file");
}

/** Tests for errors that every further attempt would meet too: the file is not a database, or has another schema. */
export function isDamage(error: unknown): boolean {
  const code = resultCode(error);
  return code === sqliteCodes.corrupt || code === sqliteCodes.notADatabase || code === sqliteCodes.error;
}

function isEmpty(database: nodeSqlite.DatabaseSync): boolean {
  return (
    numberOf(database, "PRAGMA application_id") === 0 && numberOf(database, "SELECT count(*) FROM sqlite_schema") === 0
  );
}

function makeTables(database: nodeSqlite.DatabaseSync, madeFor: string): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created the tables meanwhile.
    if (isEmpty(database)) {
      database.exec(schema);
      database.prepare("INSERT INTO state VALUES ('made-for', ?)").run(madeFor);
    }
    database.exec("COMMIT");
  } finally {
    if (database.isTransaction) database.exec("ROLLBACK");
  }
}

function isIntact(database: nodeSqlite.DatabaseSync): boolean {
  return Object.values(database.prepare("PRAGMA integrity_check(1)").get() ?? {})[0] === "ok";
}

function versionOf(database: nodeSqlite.DatabaseSync): number | null {
  if (numberOf(database, "PRAGMA application_id") !== applicationId) return null;
  return numberOf(database, "PRAGMA user_version");
}

/**
 * Reads a value of the state table. The value `made-for` shows that a file is a copy, because a copy has another
 * identity.
 */
function stateOf(database: nodeSqlite.DatabaseSync, name: string): unknown {
  return database.prepare("SELECT value FROM state WHERE name = ?").get(name)?.["value"];
}

function numberOf(database: nodeSqlite.DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0] ?? 0);
}
