import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import type Database from "better-sqlite3";
import type { SqliteDriver } from "./connection.ts";
import { isBusy, storeError } from "./sqlite-errors.ts";
import { createPrivateFile, emptyFile, fileNumber, isThere, linkBeside, removeFile, sizeOf } from "./store-file.ts";

/**
 * Another process that asks at the same moment releases the lock within this time. A process that works under the lock
 * does not.
 */
const defaultWaitMs = 10;

/** Releases the claim. The file is removed, unless its existence is a mark for other processes. */
export type Release = (options?: { readonly keepFile: boolean }) => void;

/**
 * Claims exclusive work until the returned function is called. Returns null while another process has the claim. SQLite
 * takes the system's lock on an empty file, as for all locks of this package. The lock ends with its process in every
 * case. It also works across containers, where process ids mean nothing and are reused.
 * @throws {ThroughlineError} PATH_UNSAFE, and the errors of the disk
 */
export function claim(path: string, driver: SqliteDriver, waitMs: number = defaultWaitMs): Release | null {
  for (;;) {
    inOneThread(() => createPrivateFile(path));
    const pin = linkBeside(path);
    if (pin === null) continue;
    try {
      const { database, error } = tryLock(pin, driver, waitMs);
      // The earlier holder removes the file before it releases the lock, and a lock on a file without a name excludes
      // no process. The second name proves that the path still names the locked file. On a medium without second names,
      // two processes that come at the same moment may both get the claim.
      const isSame = fileNumber(path) === fileNumber(pin);
      if (isSame && error === null) return releaseOf(database, path);
      database.close();
      if (isSame && isBusy(error)) return null;
      if (isSame) throw storeError(error, path);
    } finally {
      if (pin !== path) removeFile(pin);
    }
  }
}

function releaseOf(database: Database.Database, path: string): Release {
  return ({ keepFile } = { keepFile: false }) => {
    if (!keepFile) removeFile(path);
    database.close();
  };
}

function tryLock(
  pin: string,
  driver: SqliteDriver,
  waitMs: number,
): { readonly database: Database.Database; readonly error: unknown } {
  // No holder writes into the file. Content in it is left over and would not be read as a database.
  if (sizeOf(pin) > 0) emptyFile(pin);
  const database = driver(pin, { timeout: waitMs });
  try {
    // No write happens under this lock. A journal in a file would only be left behind.
    database.pragma("journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
    return { database, error: null };
  } catch (error) {
    return { database, error };
  }
}

/**
 * Runs the work while no other process does.
 * @throws {ThroughlineError} STORE_LOCKED with the given message while another process has the claim
 */
export function alone<Result>(path: string, driver: SqliteDriver, words: string, work: () => Result): Result {
  const release = claim(path, driver);
  if (release === null) throw refused("STORE_LOCKED", words, { path });
  try {
    return work();
  } finally {
    release();
  }
}

/** Returns the name of the file that exists, locked, while a backup replaces a store. */
export function recoverMark(path: string): string {
  return `${path}.recovery`;
}

/**
 * Refuses to create a store beside the mark of a restore, because the restore is running or was interrupted.
 * @throws {ThroughlineError} STORE_LOCKED while a process restores the store, STORE_CORRUPT when that process has ended
 */
export function assertNoRestore(path: string, driver: SqliteDriver): void {
  const mark = recoverMark(path);
  if (!isThere(mark)) return;
  const release = claim(mark, driver);
  if (release === null) throw refused("STORE_LOCKED", `${path} is being restored from a backup.`, { path });
  // The restoring process may have ended meanwhile and removed its mark. Then this claim has created the file.
  if (isThere(path)) return release();
  // Only the process that completes the restore removes the mark.
  release({ keepFile: true });
  throw new ThroughlineError("STORE_CORRUPT", `Restoring ${path} from a backup was interrupted.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Restore it again: \`throughline restore-backup FILE --yes --store 'sqlite:${path}'\`. What was there before is kept beside it.`,
  });
}
