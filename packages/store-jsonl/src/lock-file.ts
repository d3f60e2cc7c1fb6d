import type * as nodeSqlite from "node:sqlite";
import { ThroughlineError } from "@throughline/core";
import { inOneThread, quote } from "@throughline/core/internal";
import { fileError, notAFile } from "./file-work.ts";
import type { Files } from "./files.ts";
import { resultCode, sqlite, sqliteCodes } from "./sqlite-library.ts";

/** One lock, ready to be taken. */
export interface LockFile {
  /** The file that is locked. */
  readonly path: string;
  /** Which file it is: a lock on a file that was replaced under its name excludes nobody. Null where no file is locked. */
  readonly identity: string | null;
  /** False when another connection holds it. */
  tryLock(): boolean;
  /** Frees the lock. */
  unlock(): void;
  /** Frees the lock, and what it holds open. */
  close(): void;
}

/** How the writers of a folder exclude one another. */
export interface LockPort {
  /** The name for messages. */
  readonly name: string;
  /** Whether this is a lock of the kernel, which ends with its process, however that ends. */
  readonly isKernels: boolean;
  /**
   * Makes the lock file at `path`, and takes no lock yet.
   *
   * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_UNSUPPORTED, STORE_IO
   */
  open(files: Files, path: string): LockFile;
}

/**
 * Locks of the kernel on empty files, taken through SQLite. They exclude every process of one host, whatever container
 * it is in, and are dropped when their process ends. Over a network they are what the server and its mount make of them.
 */
export const kernelLocks: LockPort = { name: "kernel", isKernels: true, open: openLockFile };

/**
 * Opens an empty SQLite database as a lock, and makes it first when there is none. The file stays empty. A process that
 * holds it must not open it by other means: closing such a handle drops the process's locks.
 * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_UNSUPPORTED, STORE_IO
 */
export function openLockFile(files: Files, path: string): LockFile {
  assertLength(path);
  for (let attempt = 0; ; attempt++) {
    const identity = inOneThread(() => makeIfMissing(files, path));
    // SQLite opens what it may not write for reading, and then its BEGIN IMMEDIATE excludes nobody.
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

/** Of a longer path SQLite says no more than that it cannot open it. */
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
  // Contention is no error: the stack trace of each refused attempt would cost more than the attempt.
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

/** Something else was written into the file. An empty one is not an error: another process has just repaired it. */
function moveAside(files: Files, path: string): void {
  const facts = files.facts(path);
  if (facts !== null && facts.sizeBytes > 0) files.rename(path, `${path}.damaged-${facts.modifiedNs}`);
}
