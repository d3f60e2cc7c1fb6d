import { ThroughlineError } from "@throughline/core";
import { inOneThread, refused } from "@throughline/core/internal";
import type Database from "better-sqlite3";
import type { SqliteDriver } from "./connection.ts";
import { isBusy, storeError } from "./sqlite-errors.ts";
import { createPrivateFile, emptyFile, fileNumber, isThere, linkBeside, removeFile, sizeOf } from "./store-file.ts";

/** Whoever asks at the same moment lets go as soon; whoever is at it does not. */
const defaultWaitMs = 10;

/** Lets others be at it again. The file goes, unless it says something by being there. */
export type Release = (options?: { readonly keepFile: boolean }) => void;

/**
 * Lets nobody else be at something until what is given back is called; null when somebody is. SQLite takes the system's
 * lock on an empty file, as this package does for all its locks. The lock ends with its process, however that ends. It
 * also works across containers, where a process id means nothing and is reused.
 * @throws {ThroughlineError} PATH_UNSAFE, and what the disk says
 */
export function claim(path: string, driver: SqliteDriver, waitMs: number = defaultWaitMs): Release | null {
  for (;;) {
    inOneThread(() => createPrivateFile(path));
    const pin = linkBeside(path);
    if (pin === null) continue;
    try {
      const { database, error } = tryLock(pin, driver, waitMs);
      // Whoever had it removes the file before letting go, and a lock on a file without its name keeps nobody out. The
      // second name makes sure that it is this file, and not another one that got its number. On a medium that knows none,
      // as some that are carried about, two that come at the very same moment may both get in.
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
  // Nobody who holds the lock writes into the file: it is of a time when it named a process.
  if (sizeOf(pin) > 0) emptyFile(pin);
  const database = driver(pin, { timeout: waitMs });
  try {
    // Nothing is ever written under this lock, so that a journal would only be one more file to be left behind.
    database.pragma("journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
    return { database, error: null };
  } catch (error) {
    return { database, error };
  }
}

/**
 * Runs the work while nobody else is at it.
 * @throws {ThroughlineError} STORE_LOCKED with the words given, when somebody is
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

/** The file that is there, and locked, while a backup takes the place of a store. */
export function recoverMark(path: string): string {
  return `${path}.recovery`;
}

/**
 * Where a store is missing beside its mark it is being restored, or that was interrupted: no new one may begin there.
 * @throws {ThroughlineError} STORE_LOCKED while somebody is at it, STORE_CORRUPT when whoever was is gone
 */
export function assertNoRestore(path: string, driver: SqliteDriver): void {
  const mark = recoverMark(path);
  if (!isThere(mark)) return;
  const release = claim(mark, driver);
  if (release === null) throw refused("STORE_LOCKED", `${path} is being restored from a backup.`, { path });
  // The process that restored it may have ended since and removed its mark: this mark is then a new one.
  if (isThere(path)) return release();
  // The mark goes with the one who restores it, and not before.
  release({ keepFile: true });
  throw new ThroughlineError("STORE_CORRUPT", `Restoring ${path} from a backup was interrupted.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Restore it again: \`throughline restore-backup FILE --yes --store 'sqlite:${path}'\`. What was there before is kept beside it.`,
  });
}
