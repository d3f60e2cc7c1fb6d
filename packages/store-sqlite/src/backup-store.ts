import { refused } from "@throughline/core/store";
import { checkPages } from "./check-pages.ts";
import { assertOurs, defaultDriver, type OpenOptions, type SqliteDriver } from "./open-connection.ts";
import { storeError } from "./sqlite-errors.ts";
import { createPrivateFile, databasePath, isThere, putInPlace, removeFile, replaceFile, sizeOf } from "./store-file.ts";

/** Pages of 8 KB copied at a time; others get their turn in between. */
const pagesAtOnce = 256;

/**
 * A consistent copy of the whole store while others write: the state of the moment it was begun. The log cannot be cut
 * until it is done. The copy is checked before it gets its name.
 * @throws {ThroughlineError} EXPORT_EXISTS, ABORTED, STORE_FULL, STORE_IO, STORE_CORRUPT (the store is damaged)
 */
export async function backupStore(
  { path, driver }: Pick<OpenOptions, "path" | "driver">,
  target: string,
  signal?: AbortSignal,
): Promise<{ readonly sizeBytes: number }> {
  const to = databasePath(target);
  if (isThere(to)) throw refused("EXPORT_EXISTS", `${to} exists already.`, { path: to });
  const part = `${to}.part`;
  let database: ReturnType<SqliteDriver> | null = null;
  try {
    createPrivateFile(part);
    database = driver(path, { fileMustExist: true, timeout: 50 });
    // The snapshot of this reader is what is copied, however often others commit meanwhile.
    database.exec("BEGIN");
    database.prepare("SELECT count(*) FROM store_info").get();
    await database.backup(part, {
      progress: () => {
        signal?.throwIfAborted();
        return pagesAtOnce;
      },
    });
    database.exec("COMMIT");
    assertOurs(part, driver);
    const [wrong] = await checkPages({ path: part, mostAnswers: 1, references: false }, driver, signal);
    if (wrong !== undefined) throw refused("STORE_CORRUPT", `The store is damaged: ${wrong}`, { path });
    putInPlace(part, to);
    return { sizeBytes: sizeOf(to) };
  } catch (error) {
    removeFile(part);
    if (signal?.aborted === true) throw refused("ABORTED", "The backup was aborted.", {}, error);
    throw storeError(error, to);
  } finally {
    database?.close();
  }
}

export interface RestoreOptions {
  /** The backup; it stays as it is. */
  readonly backupPath: string;
  /** Where the store is, or shall be. */
  readonly path: string;
  /** Ends the name of what was there, which is kept. */
  readonly keptAs: string;
  readonly driver?: SqliteDriver;
}

/**
 * Puts a backup in the place of a store. Nobody may have the store open. What was there is kept beside it.
 * @throws {ThroughlineError} STORE_NOT_FOUND, STORE_CORRUPT (the backup is none), STORE_LOCKED, STORE_VERSION_UNSUPPORTED
 */
export function restoreSqliteBackup(options: RestoreOptions): { readonly keptPath: string | null } {
  const { driver = defaultDriver, keptAs } = options;
  const [path, from] = [databasePath(options.path), databasePath(options.backupPath)];
  try {
    assertBackup(from, driver);
    if (isThere(path)) assertClosed(path, driver);
    const wasThere = isThere(path);
    const keptPath = replaceFile(path, from, keptAs);
    return { keptPath: wasThere ? keptPath : null };
  } catch (error) {
    throw storeError(error, path);
  }
}

/** A backup is looked at whole before it takes the place of anything. */
export function assertBackup(path: string, driver: SqliteDriver): void {
  if (!isThere(path)) throw refused("STORE_NOT_FOUND", `There is no backup at ${path}.`, { path });
  assertOurs(path, driver);
  const database = driver(path, { readonly: true, fileMustExist: true, timeout: 50 });
  try {
    const answer: unknown = database.pragma("quick_check(1)", { simple: true });
    if (answer !== "ok") throw refused("STORE_CORRUPT", `The backup ${path} is damaged: ${String(answer)}`, { path });
  } finally {
    database.close();
  }
}

/** Leaving WAL needs the file for oneself alone, and writes the log into it; a damaged file has nothing to be written. */
function assertClosed(path: string, driver: SqliteDriver): void {
  const database = driver(path, { fileMustExist: true, timeout: 50 });
  let mode: unknown;
  try {
    mode = database.pragma("journal_mode = DELETE", { simple: true });
  } catch (error) {
    if (storeError(error, path).code !== "STORE_CORRUPT") throw error;
    return;
  } finally {
    database.close();
  }
  if (mode !== "delete") throw refused("STORE_LOCKED", `Somebody has ${path} open.`, { path });
}
