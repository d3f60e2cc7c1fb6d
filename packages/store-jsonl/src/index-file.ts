import type * as nodeSqlite from "node:sqlite";
import { inOneThread } from "@throughline/core/internal";
import { folderOf } from "./file-work.ts";
import type { Files } from "./files.ts";
import { resultCode, sqlite, sqliteCodes } from "./sqlite-library.ts";

/** An open index file. Nothing but SQLite may open it while this process has it: closing such a handle drops its locks. */
export interface IndexFile {
  readonly database: nodeSqlite.DatabaseSync;
  /** To notice that another file stands under the name. */
  readonly identity: string;
}

/**
 * `unusable`: broken, another program's, or a newer version's. `outdated`: ours, but an older version's, or of another
 * file, store or codec, as after the whole store was copied. `unavailable`: not now, for whatever reason.
 */
export type OpenedIndex = IndexFile | "missing" | "unusable" | "outdated" | "unavailable";

/** "THLI": distinguishes our file from another program's. */
const applicationId = 0x54484c49;
const schemaVersion = 2;
/** A transaction here takes a few milliseconds; who finds it longer goes without the index for once. */
const busyTimeoutMs = 20;

/** An index of at most this size, for some 2,000 sessions, is checked as a whole when it is opened: that takes 3 ms. */
const maxCheckedBytes = 2 * 1024 * 1024;

/** A row that cannot be what was written. */
export class DamagedIndex extends Error {}

/** Others wait no longer than this number takes. */
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

/** Opens the index, and makes it when asked to and there is none. Throws nothing: an index is never needed. */
export function openIndexFile(
  files: Files,
  path: string,
  { create, isCoded }: { readonly create: boolean; readonly isCoded: boolean },
): OpenedIndex {
  let database: nodeSqlite.DatabaseSync | null = null;
  try {
    // A link on the way there is refused here: SQLite would follow it.
    files.realPath(folderOf(path));
    if (files.facts(path) === null) {
      if (!create) return "missing";
      // SQLite would make it readable for others. Its handle is closed before anybody can hold a lock on it.
      inOneThread(() => files.close(files.open(path, "create")));
    }
    const facts = files.facts(path);
    // What may not be written is opened for reading, and then its transactions exclude nobody.
    if (facts?.kind !== "file" || !files.isWritable(path) || !areFiles(files, path)) return "unavailable";
    const opened = new (sqlite().DatabaseSync)(path, { timeout: busyTimeoutMs });
    database = opened;
    // secure_delete: what was purged must not stay behind in a free page.
    inOneThread(() => opened.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON"));
    const madeFor = `${facts.identity} ${isCoded ? "coded" : "plain"}`;
    if (isEmpty(database)) makeTables(database, madeFor);
    const version = versionOf(database);
    const isCurrent = version === schemaVersion && stateOf(database, "made-for") === madeFor;
    // SQLite notices only some damage by itself: a session that it does not find any more would be one that never was.
    const isWhole = !isCurrent || facts.sizeBytes > maxCheckedBytes || isIntact(database);
    if (isCurrent && isWhole) return { database, identity: facts.identity };
    database.close();
    if (!isWhole) return "unusable";
    return version !== null && version <= schemaVersion ? "outdated" : "unusable";
  } catch (error) {
    if (database?.isOpen === true) database.close();
    return isDamage(error) ? "unusable" : "unavailable";
  }
}

/** SQLite opens what lies beside a database by these names, and would wait at a named pipe for ever. */
function areFiles(files: Files, path: string): boolean {
  return ["-journal", "-wal", "-shm"].every((suffix) => (files.facts(`${path}${suffix}`)?.kind ?? "file") === "file");
}

/** True for errors that another attempt will meet again: the file is no database, or not one of this shape. */
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
    // Another process may have been faster.
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

/** Null for another program's file. */
function versionOf(database: nodeSqlite.DatabaseSync): number | null {
  if (numberOf(database, "PRAGMA application_id") !== applicationId) return null;
  return numberOf(database, "PRAGMA user_version");
}

/** A copy of an older index, put in its place, is another file than the one it says it was made as. */
function stateOf(database: nodeSqlite.DatabaseSync, name: string): unknown {
  return database.prepare("SELECT value FROM state WHERE name = ?").get(name)?.["value"];
}

function numberOf(database: nodeSqlite.DatabaseSync, sql: string): number {
  return Number(Object.values(database.prepare(sql).get() ?? {})[0] ?? 0);
}
