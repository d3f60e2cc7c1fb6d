import { dirname } from "node:path";
import {
  causeText,
  abortedBefore,
  assertKnownOptions,
  createFinding,
  optionKinds,
  refused,
} from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import { hasErrorCode } from "@throughline/core";
import type { Finding } from "@throughline/core";
import type { OptionTable } from "@throughline/core/internal";
import { checkPages } from "./check-pages.ts";
import { checkRows } from "./check-rows.ts";
import { alone, claim, recoverMark } from "./claim-file.ts";
import type { Release } from "./claim-file.ts";
import { defaultDriver } from "./connection.ts";
import type { Connection, OpenOptions, SqliteDriver } from "./connection.ts";
import { damageOfLog, keepDamagedLog } from "./log-damage.ts";
import { assertOurs, closeDatabase, openConnection, pageBytes } from "./open-connection.ts";
import { deleteOldIndexSlice, emptyIndex } from "./search-index.ts";
import { isDamage, storeError } from "./sqlite-errors.ts";
import { databasePath } from "./file-facts.ts";
import {
  backupsBeside,
  copyDatabase,
  createPrivateFile,
  isThere,
  makeFolders,
  putInPlace,
  removeDatabase,
  replaceFile,
  sizeOf,
} from "./store-file.ts";

/** Other work runs after each step of this many pages of 8 KB. */
const pagesAtOnce = 256;

export interface BackupSource extends Pick<OpenOptions, "path" | "driver"> {
  /** A connection that no code writes through. It is the source where the path cannot be opened a second time. */
  readonly opened?: Connection["database"] | undefined;
  /** Names the codec of the store, whose index of words is left out of the copy. @default none */
  readonly codecName?: string | null | undefined;
}

/**
 * Writes a consistent copy of the whole store, with the state of the moment when the backup begins, while others write.
 * The log cannot be cut until the backup ends. The copy is checked before it gets its name.
 * @throws {ThroughlineError} EXPORT_EXISTS, STORE_LOCKED (another process makes the same one), ABORTED, STORE_FULL,
 *   STORE_IO, STORE_READ_ONLY, STORE_CORRUPT (the store is damaged)
 */
export async function backupStore(
  { path, driver, opened, codecName = null }: BackupSource,
  target: string,
  signal?: AbortSignal,
): Promise<{ readonly sizeBytes: number }> {
  const to = databasePath(target);
  const release = claimBackup(to, driver);
  const part = `${to}.part`;
  let database: ReturnType<SqliteDriver> | null = null;
  try {
    if (isThere(to)) throw refused("EXPORT_EXISTS", `${to} exists already.`, { path: to });
    // A process that was killed may have left an unfinished copy.
    removeDatabase(part);
    createPrivateFile(part);
    if (opened === undefined) {
      database = driver(path, { fileMustExist: true, timeout: 50 });
      // The backup copies the snapshot of this reader, however often others commit meanwhile.
      database.exec("BEGIN");
      database.prepare("SELECT count(*) FROM store_info").get();
    }
    await (opened ?? database)?.backup(part, {
      progress: () => {
        signal?.throwIfAborted();
        return pagesAtOnce;
      },
    });
    database?.exec("COMMIT");
    assertOurs(part, driver);
    leaveLog(part, driver);
    if (codecName !== null) await leaveIndexOut(part, driver, signal);
    const [wrong] = await checkPages({ path: part, mostAnswers: 1, references: false }, driver, signal);
    const damage = wrong ?? (await damagedRow(part, driver, signal));
    if (damage !== null) throw refused("STORE_CORRUPT", `The store is damaged: ${damage}`, { path });
    putInPlace(part, to);
    return { sizeBytes: sizeOf(to) };
  } catch (error) {
    removeDatabase(part);
    if (signal?.aborted === true) throw abortedBefore("the backup was done", signal);
    throw storeError(error, to);
  } finally {
    if (database !== null) closeDatabase(database);
    release();
  }
}

/**
 * Empties the index of words of a copy, because the key of its tokens outlives the keys of sessions. The next search of a
 * restored store fills it.
 */
async function leaveIndexOut(path: string, driver: SqliteDriver, signal?: AbortSignal): Promise<void> {
  const database = driver(path, { fileMustExist: true, timeout: 50 });
  try {
    leaveOutJournal(database);
    database.pragma("secure_delete = ON");
    const deleteOld = async (): Promise<void> => {
      while (deleteOldIndexSlice({ database })) {
        await new Promise((resolve) => setImmediate(resolve));
        signal?.throwIfAborted();
      }
    };
    await deleteOld();
    emptyIndex({ database });
    await deleteOld();
  } finally {
    closeDatabase(database);
  }
}

/** The copy is thrown away after an interruption, so it needs no journal, which would hold the tokens too. */
function leaveOutJournal(database: ReturnType<SqliteDriver>): void {
  try {
    // SQLite keeps the journal without this mode, and says nothing.
    database.unsafeMode(true);
    const mode: unknown = database.pragma("journal_mode = OFF", { simple: true });
    if (mode !== "off") throw refused("INTERNAL", "A copy of the store cannot be written without a journal.", { mode });
  } finally {
    database.unsafeMode(false);
  }
}

/** Returns the damage in the rows of a copy, or null. Other work runs in between. */
async function damagedRow(path: string, driver: SqliteDriver, signal?: AbortSignal): Promise<string | null> {
  const database = driver(path, { readonly: true, fileMustExist: true, timeout: 50 });
  try {
    const check = checkRows(database);
    for (;;) {
      const { done, value } = check.next();
      if (done === true) return value;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    }
  } finally {
    closeDatabase(database);
  }
}

/** @throws {ThroughlineError} EXPORT_EXISTS, STORE_LOCKED, and what the disk says of the folder */
function claimBackup(to: string, driver: SqliteDriver): Release {
  try {
    if (isThere(to)) throw refused("EXPORT_EXISTS", `${to} exists already.`, { path: to });
    const release = claim(`${to}.under-way`, driver);
    if (release !== null) return release;
  } catch (error) {
    throw storeError(error, to);
  }
  throw refused("STORE_LOCKED", `Another process makes the backup ${to}.`, { path: to });
}

/** Holds the options of `restoreSqliteBackup`. */
export interface RestoreOptions {
  /** Names the file of the backup, which is only read. */
  readonly backupPath: string;
  /** Names the database file of the store, which need not exist. */
  readonly path: string;
  /** Ends the name under which the replaced file is kept beside the store. */
  readonly keptAs: string;
  /** Opens the databases. @default better-sqlite3 */
  readonly driver?: SqliteDriver | undefined;
}

const { callback, filledText, required } = optionKinds;

/** Describes the kinds of the options of `restoreSqliteBackup`. */
export const restoreTable: OptionTable<RestoreOptions> = {
  backupPath: required(filledText),
  path: required(filledText),
  keptAs: required(filledText),
  driver: callback,
};

/**
 * Puts a backup in the place of a store that no process has open. The replaced file is kept beside it. The folder of
 * the backup is only read, so it may be one that cannot be written.
 * @throws {ThroughlineError} STORE_NOT_FOUND, PATH_UNSAFE (the backup is no regular file), STORE_CORRUPT (it is none),
 * STORE_LOCKED,
 *   STORE_VERSION_UNSUPPORTED
 */
export function restoreSqliteBackup(options: RestoreOptions): { readonly keptPath: string | null } {
  assertKnownOptions<RestoreOptions>("restoreSqliteBackup", options, restoreTable);
  const { driver = defaultDriver, keptAs } = options;
  const [path, from] = [databasePath(options.path), databasePath(options.backupPath)];
  const part = `${path}.restored.part`;
  try {
    makeFolders(dirname(path));
    return alone(recoverMark(path), driver, `Another process restores ${path}.`, () => {
      copyBackup(from, part, driver);
      try {
        const wasThere = isThere(path);
        if (wasThere) assertClosed(path, driver);
        const keptPath = replaceFile(path, part, keptAs);
        return { keptPath: wasThere ? keptPath : null };
      } finally {
        removeDatabase(part);
      }
    });
  } catch (error) {
    throw storeError(error, path);
  }
}

/**
 * Makes a private copy of a backup and checks all of it before it replaces a file. SQLite opens only the copy: it would
 * create a log and an index beside the backup, or fail in a folder that cannot be written.
 */
function copyBackup(backup: string, to: string, driver: SqliteDriver): void {
  if (!isThere(backup)) throw refused("STORE_NOT_FOUND", `There is no backup at ${backup}.`, { path: backup });
  try {
    copyDatabase(backup, to);
    assertOurs(to, driver, backup);
    leaveLog(to, driver);
    const database = driver(to, { readonly: true, fileMustExist: true, timeout: 50 });
    try {
      const answer: unknown = database.pragma("integrity_check(1)", { simple: true });
      const damage = answer === "ok" ? wholeCheck(database) : String(answer);
      if (damage !== null)
        throw refused("STORE_CORRUPT", `The backup ${backup} is damaged: ${damage}`, { path: backup });
    } finally {
      database.close();
    }
  } catch (error) {
    removeDatabase(to);
    throw storeError(error, backup);
  }
}

function wholeCheck(database: ReturnType<SqliteDriver>): string | null {
  const check = checkRows(database);
  for (;;) {
    const { done, value } = check.next();
    if (done === true) return value;
  }
}

/**
 * Makes a finished copy one file. While its header states a log, every connection would create a log and an index
 * beside it.
 */
export function leaveLog(path: string, driver: SqliteDriver): void {
  const database = driver(path, { fileMustExist: true, timeout: 50 });
  try {
    const mode: unknown = database.pragma("journal_mode = DELETE", { simple: true });
    if (mode !== "delete") throw refused("STORE_LOCKED", `Somebody has ${path} open.`, { path });
  } finally {
    database.close();
  }
}

/**
 * Leaving WAL needs exclusive access and writes the log into the file, so it shows whether the store is closed. A
 * damaged file has no log that could be written back.
 */
function assertClosed(path: string, driver: SqliteDriver): void {
  const damage = damageOfLog(path, pageBytes);
  if (damage !== null) keepDamagedLog(path, damage);
  try {
    inOneThread(() => leaveLog(path, driver));
  } catch (error) {
    if (storeError(error, path).code !== "STORE_CORRUPT") throw error;
  }
}

/** Returns whether a store could not be opened because its file is damaged. */
export function isUnreadable(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT") || isDamage(error);
}

/**
 * Replaces a file that cannot be opened as a store with the newest good backup. The file, its log and its index are
 * kept beside it. Returns null and changes nothing when there is no good backup. The caller excludes databases of other
 * programs.
 * @throws {ThroughlineError} STORE_LOCKED while another process restores the store, or has just restored it
 */
export function recoverStore(options: OpenOptions, nowMs: number, damage: unknown): Finding | null {
  const { driver } = options;
  const path = databasePath(options.path);
  if (backupsBeside(path).length === 0) return null;
  const restored = alone(recoverMark(path), driver, `Another process restores ${path}.`, () => {
    if (isThere(path) && isReadable(options))
      throw refused("STORE_LOCKED", `Another process has restored ${path}.`, { path });
    const part = `${path}.restored.part`;
    const backup = backupsBeside(path).find((each) => isGood(each, part, driver));
    if (backup === undefined) return null;
    const kept = replaceFile(path, part, `damaged-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}`);
    return { backup, kept };
  });
  if (restored === null) return null;
  const why = causeText(damage);
  const { backup, kept } = restored;
  return createFinding("STORE_RESTORED", `${path} was restored from ${backup}; the damaged file is ${kept}. ${why}`, {
    path: kept,
    repaired: true,
  });
}

/**
 * Two processes may meet the same damage. The second process must not replace the backup that the first one has
 * restored.
 */
function isReadable(options: OpenOptions): boolean {
  try {
    closeDatabase(openConnection({ ...options, create: false }).database);
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

/** Copies the backup to the part. Returns false when the file is no good backup. */
function isGood(backup: string, part: string, driver: OpenOptions["driver"]): boolean {
  try {
    copyBackup(backup, part, driver);
    return true;
  } catch (error) {
    if (isUnreadable(error) || hasErrorCode(error, "STORE_FOREIGN", "STORE_VERSION_UNSUPPORTED")) return false;
    throw error;
  }
}
