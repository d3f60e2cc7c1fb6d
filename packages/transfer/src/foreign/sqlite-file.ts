import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";

/**
 * Distinguishes a Throughline store, another program's database, the log of a database, and a database with a damaged
 * first page.
 */
export type SqliteFile = "store" | "foreign" | "log" | "headless";

/** Identifies a Throughline store at byte 68 of the file (`PRAGMA application_id`). */
const storeApplicationId = 0x546c6e65;

const headerBytes = 100;

/** Returns null for any other file, and for a path that cannot be read. */
export function sqliteFileOf(path: string): SqliteFile | null {
  const head = headOf(path);
  if (head === null) return null;
  if (head.toString("latin1", 0, 16) === "SQLite format 3\0")
    return head.length >= headerBytes && head.readUInt32BE(68) === storeApplicationId ? "store" : "foreign";
  if (isLog(head)) return "log";
  // The first page may be damaged, so the file name decides. A transcript starts with a brace under any name.
  const hasDatabaseName = /\.(db|sqlite3?|backup)$|\.repaired-[^.]*$/i.test(basename(path));
  return hasDatabaseName && head.length > 0 && !/^[\ufeff\s]*[[{]/u.test(head.toString("utf8")) ? "headless" : null;
}

/** Detects a write-ahead log, in either byte order, or a rollback journal. */
function isLog(head: Buffer): boolean {
  return /^(377f068[23]|d9d505f920a163d7)/.test(head.toString("hex", 0, 8));
}

export function fileExists(path: string): boolean {
  return existsSync(path);
}

/** Opens without blocking, because the path may be a pipe; only a regular file is read. */
function headOf(path: string): Buffer | null {
  let handle: number;
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    if (!fstatSync(handle).isFile()) return null;
    const head = Buffer.alloc(headerBytes);
    return head.subarray(0, readSync(handle, head, 0, headerBytes, 0));
  } finally {
    closeSync(handle);
  }
}
