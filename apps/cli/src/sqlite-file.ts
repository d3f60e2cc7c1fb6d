import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";

/**
 * What a file that belongs to SQLite is: a store of ours, a database of another program, a log that belongs to a database,
 * or what goes by the name of a database and no longer begins like one.
 */
export type SqliteFile = "store" | "foreign" | "log" | "headless";

/** "Tln" and a sign of ours, at byte 68 of a database that is a store (docs: `PRAGMA application_id`). */
const storeApplicationId = 0x546c6e65;

const headerBytes = 100;

/** Null for what is none, and for what is not there or cannot be read: whoever reads it says why. */
export function sqliteFileOf(path: string): SqliteFile | null {
  const head = headOf(path);
  if (head === null) return null;
  if (head.toString("latin1", 0, 16) === "SQLite format 3\0")
    return head.length >= headerBytes && head.readUInt32BE(68) === storeApplicationId ? "store" : "foreign";
  if (isLog(head)) return "log";
  // The first page may be what is damaged. A transcript begins with a brace, whatever its file is called.
  const isNamedSo = /\.(db|sqlite3?|backup)$|\.repaired-[^.]*$/i.test(basename(path));
  return isNamedSo && head.length > 0 && !/^[\ufeff\s]*[[{]/u.test(head.toString("utf8")) ? "headless" : null;
}

/** A log to write ahead, in either order of bytes, or one to roll back. */
function isLog(head: Buffer): boolean {
  return /^(377f068[23]|d9d505f920a163d7)/.test(head.toString("hex", 0, 8));
}

/** The first bytes of a regular file. Nobody waits for a pipe. */
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
