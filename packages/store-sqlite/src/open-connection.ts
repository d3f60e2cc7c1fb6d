import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import { dirname } from "node:path";
import type Database from "better-sqlite3";
import { assertSchema } from "./check-schema.ts";
import { assertSchemaVersion, createSchema } from "./create-schema.ts";
import { applicationId } from "./schema.ts";
import { KnownSessions } from "./known-sessions.ts";
import { isBusy, nativeCode, storeError } from "./sqlite-errors.ts";
import { prepareStatements } from "./statements.ts";
import { damageOfLog, keepDamagedLog } from "./log-damage.ts";
import { keepLostLog, lostLogOf } from "./lost-log.ts";
import { assertNoRestore } from "./claim-file.ts";
import { databasePath } from "./file-facts.ts";
import { assertRoom, roomCheck } from "./file-system.ts";
import { fileNumber, isWritable, readHeader, unreadableBecause } from "./store-file.ts";
import { prepareFile, removeUnbegun } from "./prepare-file.ts";
import type { Connection, OpenOptions, SqliteDriver } from "./connection.ts";

/** SQLite waits by itself at open, because creating the schema and converting to WAL have no other way to wait. */
const openingBusyTimeoutMs = 50;

/** An earlier version may lose commits when it resets the log in WAL mode (SQLite's release notes of 3.51.3). */
const oldestVersion = [3, 51, 3] as const;

export const pageBytes = 8192;

const journalSizeLimitBytes = 32 * 1024 * 1024;

/** Each setting is read back after it is set. A build or a file that does not take a setting is refused. */
const settings: readonly (readonly [name: string, value: string | number, read: string | number])[] = [
  ["journal_mode", "WAL", "wal"],
  ["synchronous", "FULL", 2],
  // Without these settings, a flush on macOS ends in the cache of the drive. Elsewhere they change nothing.
  ["fullfsync", "ON", 1],
  ["checkpoint_fullfsync", "ON", 1],
  ["foreign_keys", "ON", 1],
  ["trusted_schema", "OFF", 0],
  ["cell_size_check", "ON", 1],
  ["secure_delete", "ON", 1],
  ["journal_size_limit", journalSizeLimitBytes, journalSizeLimitBytes],
  // `LogKeeper` runs checkpoints beside the commits.
  ["wal_autocheckpoint", 0, 0],
  ["temp_store", "MEMORY", 2],
  ["mmap_size", 0, 0],
];

/**
 * Opens the store, in one attempt. A file that is no Throughline store, or has another schema, is not written to.
 * @throws {ThroughlineError} STORE_NOT_FOUND, STORE_CORRUPT, STORE_FOREIGN, STORE_VERSION_UNSUPPORTED, STORE_LOCKED, STORE_READ_ONLY,
 *   STORE_FULL, STORE_IO, STORE_UNSUPPORTED, PATH_UNSAFE, CODEC_FAILED
 */
export function openConnection(options: OpenOptions): Connection {
  const path = databasePath(options.path);
  let database: Database.Database | null = null;
  let isMade = false;
  try {
    isMade = prepareFile(path, options.create, () => assertNoRestore(path, options.driver));
    assertRoom(path, "open");
    // These checks come before SQLite opens the file, because the first connection ends the log at the first frame that
    // does not match.
    const damage = damageOfLog(path, pageBytes);
    const lost = lostLogOf(path);
    assertOurs(path, options.driver);
    const findings = [
      ...(damage === null ? [] : [keepDamagedLog(path, damage)]),
      ...(lost === null ? [] : [keepLostLog(path, lost)]),
    ];
    const opened = options.driver(path, { fileMustExist: true, timeout: openingBusyTimeoutMs });
    database = opened;
    inOneThread(() => beginLog(opened, path));
    assertSchema(database, path);
    for (const setting of settings) applySetting(database, setting);
    claimCodec(database, options.codecName);
    const statements = prepareStatements(database);
    database.pragma("busy_timeout = 0");
    const connection = {
      database,
      statements,
      known: new KnownSessions(),
      findings,
      setDiskSync: diskSyncSwitch(database),
      assertInPlace: placeCheck(path),
      isCopy: false,
      assertCurrent: () => undefined,
    };
    if (damage !== null) leaveDamageBehind(connection);
    return connection;
  } catch (error) {
    if (database !== null) closeDatabase(database);
    if (isMade) inOneThread(() => removeUnbegun(path));
    const unreadable = unreadableBecause(path);
    if (unreadable !== null) throw unreadableStore(path, unreadable, error);
    if (nativeCode(error) === "SQLITE_CANTOPEN" && !isWritable(path)) {
      throw refused("STORE_READ_ONLY", `${path} or its folder cannot be written.`, { path }, error);
    }
    throw storeError(error, path);
  }
}

function unreadableStore(path: string, why: string, cause: unknown): ThroughlineError {
  return new ThroughlineError("FILE_UNREADABLE", `The store ${path} cannot be read by this user (${why}).`, {
    outcome: "not-applied",
    details: { path, nativeCode: why },
    cause,
    remedy: `As the owner of the file run \`chmod u+rw ${path}\`, or \`chmod u+rwx ${dirname(path)}\` where that folder cannot be entered.`,
  });
}

/**
 * No other thread may read the file before the database has an index of its log, because until then no process can see
 * that it is open. See `readHeader`.
 */
function beginLog(database: Database.Database, path: string): void {
  assertVersion(database);
  // Only an empty database takes a page size. The schema is created before WAL, so the header of the main file is true
  // from the first moment. That header is all that other processes may read.
  database.pragma(`page_size = ${pageBytes}`);
  database.pragma("secure_delete = ON");
  // Asking opens the log of a database that was in use before.
  if (database.pragma("journal_mode", { simple: true }) === "wal") return;
  createSchema(database, path);
  applySetting(database, ["journal_mode", "WAL", "wal"]);
}

/**
 * Checks the file without changing it, because a database of another program must stay as it is, with its side files.
 * Errors name the file as `shown`.
 */
export function assertOurs(path: string, driver: SqliteDriver, shown: string = path): void {
  const header = inOneThread(() => readHeader(path)) ?? readThrough(path, driver);
  if (header.isEmpty) return;
  if (!header.isSqlite)
    throw refused("STORE_CORRUPT", `${shown} is damaged or is not a SQLite database; it was not changed.`, {
      path: shown,
    });
  if (header.applicationId !== applicationId)
    throw refused("STORE_FOREIGN", `${shown} is a database of another program; it was not changed.`, { path: shown });
  assertSchemaVersion(shown, header.userVersion);
  if (!header.isWhole)
    throw refused("STORE_CORRUPT", `${shown} ends within a page; it was not changed.`, { path: shown });
}

/**
 * The last connection to close removes the index before the log. In between, no process could see that the database is
 * in use.
 */
export function closeDatabase(database: Database.Database): void {
  inOneThread(() => database.close());
}

/** Reads the header through SQLite, which knows its own locks, because a process may have the database open. */
function readThrough(path: string, driver: SqliteDriver): NonNullable<ReturnType<typeof readHeader>> {
  const database = driver(path, { readonly: true, fileMustExist: true, timeout: openingBusyTimeoutMs });
  try {
    const number = (name: string): number => database.pragma(name, { simple: true }) as number;
    return {
      isEmpty: number("page_count") === 0,
      isSqlite: true,
      applicationId: number("application_id"),
      userVersion: number("user_version"),
      isWhole: true,
    };
  } finally {
    closeDatabase(database);
  }
}

function assertVersion(database: Database.Database): void {
  const text = database.prepare<[], string>("SELECT sqlite_version()").pluck().get() ?? "";
  const parts = text.split(".").map(Number);
  const difference = oldestVersion.map((oldest, index) => (parts[index] ?? 0) - oldest).find((each) => each !== 0) ?? 0;
  if (difference >= 0) return;
  throw refused(
    "STORE_UNSUPPORTED",
    `SQLite ${text} may lose commits; ${oldestVersion.join(".")} or newer is needed.`,
    { version: text },
  );
}

function applySetting(database: Database.Database, [name, value, read]: (typeof settings)[number]): void {
  database.pragma(`${name} = ${value}`);
  const actual: unknown = database.pragma(name, { simple: true });
  if (actual === read) return;
  // A transaction of another connection keeps the database from changing to WAL. SQLite then answers with the old mode.
  const code = name === "journal_mode" ? "STORE_LOCKED" : "STORE_UNSUPPORTED";
  throw refused(code, `SQLite answers ${String(actual)} for ${name}, not ${read}.`, { name, actual, expected: read });
}

/** Stores the name of the codec at first use. Another codec is then refused before it decodes anything. */
function claimCodec(database: Database.Database, codecName: string | null): void {
  const wanted = codecName ?? "";
  const find = database.prepare<[], string>("SELECT value FROM store_info WHERE name = 'codec'").pluck();
  if (find.get() === undefined) {
    database.prepare("INSERT INTO store_info (name, value) VALUES ('codec', ?) ON CONFLICT DO NOTHING").run(wanted);
  }
  const kept = find.get() ?? "";
  if (kept === wanted) return;
  const name = (text: string): string => (text === "" ? "no codec" : `the codec ${JSON.stringify(text)}`);
  throw refused("CODEC_FAILED", `The store was written under ${name(kept)}, not under ${name(wanted)}.`, {
    kept,
    given: wanted,
  });
}

/**
 * Moves the log into the database. Otherwise the damage would be found again after the next crash, behind newer
 * commits.
 */
function leaveDamageBehind(connection: Connection): void {
  try {
    cutLog(connection);
  } catch (error) {
    // A failure costs at most a second finding, so it must not prevent reading.
    if (!isBusy(error) && nativeCode(error) !== "SQLITE_FULL") throw error;
  }
}

function placeCheck(path: string): () => void {
  const numbers = (): readonly [string | null, string | null] => [fileNumber(path), fileNumber(`${path}-wal`)];
  const [opened, log] = numbers();
  const assertWritable = roomCheck(path);
  return () => {
    assertWritable();
    const [now, logNow] = numbers();
    if (now !== opened)
      throw refused("STORE_IO", `The database file ${path} was moved, replaced or deleted while it was open.`, {
        path,
      });
    if (logNow === log) return;
    // SQLite would continue to write to the log without a name, and no process would find it after a crash.
    throw new ThroughlineError("STORE_IO", `The log ${path}-wal was moved, replaced or deleted while it was open.`, {
      outcome: "not-applied",
      details: { path },
      remedy: "Close the store, which saves what the log held, and open it again; nothing of this write was applied.",
    });
  };
}

function diskSyncSwitch(database: Database.Database): (isOn: boolean) => void {
  let current = true;
  return (isOn) => {
    if (isOn === current) return;
    database.pragma(`synchronous = ${isOn ? "FULL" : "NORMAL"}`);
    current = isOn;
  };
}

/** Moves the log into the database and cuts it, without waiting. Returns false while a reader needs the log. */
export function cutLog({ database }: Connection): boolean {
  const [answer] = database.pragma("wal_checkpoint(TRUNCATE)") as { readonly busy: number }[];
  return answer?.busy === 0;
}
