import type * as nodeSqlite from "node:sqlite";
import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import { fileError, notAFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import { resultCode, sqlite, sqliteCodes } from "./sqlite-library.ts";

/** Represents one lock, which is not taken when it is opened. */
export interface LockFile {
  /** States the path of the locked file. */
  readonly path: string;
  /**
   * Identifies the locked file, or is null when no file is locked. A lock on a file that was replaced under its name
   * excludes no process.
   */
  readonly identity: string | null;
  /** Takes the lock, or returns false when another connection holds it. */
  tryLock(): boolean;
  /** Releases the lock. */
  unlock(): void;
  /** Releases the lock and its resources. */
  close(): void;
}

/** Supplies the locks that keep writers of a folder from running at once. */
export interface LockPort {
  /** States the name that messages use. */
  readonly name: string;
  /** States whether the locks are the kernel's, which end with their process in every case. */
  readonly isKernels: boolean;
  /**
   * Creates the lock file at `path`, without taking the lock.
   *
   * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_UNSUPPORTED, STORE_IO
   */
  open(files: Files, path: string): LockFile;
}

/**
 * Provides kernel locks on empty files, taken through SQLite. They exclude every process of one host, in any container,
 * and end with their process. On a network file system they depend on the server and its mount.
 */
export const kernelLocks: LockPort = { name: "kernel", isKernels: true, open: openLockFile };

/**
 * Opens an empty SQLite database as a lock, and creates it if necessary. The file stays empty. A process that holds the
 * lock must not open the file by other means, because closing that descriptor drops the process's locks.
 * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_UNSUPPORTED, STORE_IO
 */
export function openLockFile(files: Files, path: string): LockFile {
  assertLength(path);
  for (let attempt = 0; ; attempt++) {
    const identity = inOneThread(() => makeIfMissing(files, path));
    // SQLite opens an unwritable file read-only, and its BEGIN IMMEDIATE then excludes no process.
    if (!files.isWritable(path)) {
      throw new ThroughlineError("STORE_READ_ONLY", `${quote(path)} cannot be written.`, {
        outcome: "not-applied",
        details: { path },
      });
    }
    try {
      return lockFileOf(
        inOneThread(() => openDatabase(path)),
        path,
        identity,
      );
    } catch (error) {
      if (resultCode(error) === sqliteCodes.notADatabase && attempt < 8) moveAside(files, path);
      else if (resultCode(error) !== sqliteCodes.busy || attempt >= 64) throw fileError(error, path);
    }
  }
}

function openDatabase(path: string): nodeSqlite.DatabaseSync {
  const database = new (sqlite().DatabaseSync)(path);
  try {
    database.exec("PRAGMA journal_mode=MEMORY; PRAGMA busy_timeout=0; SELECT count(*) FROM sqlite_schema");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Longer paths are checked here, because SQLite would only report that it cannot open them. */
const maxPathBytes = 504;

function assertLength(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes <= maxPathBytes) return;
  throw new ThroughlineError("STORE_UNSUPPORTED", `The path of a lock has ${bytes} bytes: ${quote(path)}.`, {
    outcome: "not-applied",
    remedy: `Use a shorter root: SQLite, which makes the locks, opens paths of at most ${maxPathBytes} bytes.`,
    details: { path, bytes, maxBytes: maxPathBytes },
  });
}

function lockFileOf(database: nodeSqlite.DatabaseSync, path: string, identity: string): LockFile {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const rollback = database.prepare("ROLLBACK");
  return {
    path,
    identity,
    tryLock: () => runUnlessBusy(begin, path),
    unlock: () => void rollback.run(),
    close() {
      if (database.isOpen) database.close();
    },
  };
}

function runUnlessBusy(begin: nodeSqlite.StatementSync, path: string): boolean {
  // Contention is expected. A stack trace for each refused attempt would cost more than the attempt.
  const traceLimit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    begin.run();
    return true;
  } catch (error) {
    if (resultCode(error) === sqliteCodes.busy) return false;
    throw fileError(error, path);
  } finally {
    Error.stackTraceLimit = traceLimit;
  }
}

function makeIfMissing(files: Files, path: string): string {
  try {
    files.close(files.open(path, "create"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(error, path);
  }
  const facts = files.facts(path);
  if (facts?.kind !== "file") throw notAFile(path);
  return facts.identity;
}

/** Renames a file that is not an empty database. An empty file passes, because another process has just repaired it. */
function moveAside(files: Files, path: string): void {
  const facts = files.facts(path);
  if (facts !== null && facts.sizeBytes > 0) files.rename(path, `${path}.damaged-${facts.modifiedNs}`);
}
