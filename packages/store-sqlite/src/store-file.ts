import { refused } from "@throughline/core/store";
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { nativeCode } from "./sqlite-errors.ts";

/** What the first bytes of a file say, or that there are none. */
export interface FileHeader {
  readonly isEmpty: boolean;
  readonly isSqlite: boolean;
  readonly applicationId: number;
  readonly userVersion: number;
}

/**
 * The path SQLite is given.
 * @throws {ThroughlineError} PATH_UNSAFE for what the driver would read as another name
 */
export function databasePath(path: string): string {
  const full = resolve(path);
  if (full !== full.trim() || full.includes("\0"))
    throw refused("PATH_UNSAFE", `The path ${JSON.stringify(path)} ends with white space.`, { path });
  return full;
}

/**
 * Makes sure that the file is there, readable by its owner only, and no link. SQLite gives its side files the mode of
 * the database, so the mode is set before SQLite sees it.
 * @throws {ThroughlineError} STORE_NOT_FOUND, PATH_UNSAFE
 */
export function prepareFile(path: string, create: boolean): void {
  for (const each of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) assertRegular(each);
  if (kindOf(path) !== "none") return;
  if (!create) throw refused("STORE_NOT_FOUND", `There is no store at ${path}.`, { path });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  createPrivateFile(path);
  syncFolder(dirname(path));
}

/** Creates an empty file of mode 0600; one that is there already is left as it is. */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
    chmodSync(path, 0o600);
  } catch (error) {
    if (nativeCode(error) !== "EEXIST") throw error;
    assertRegular(path);
  }
}

/** Gives a finished file its name, durably. */
export function putInPlace(from: string, to: string): void {
  const descriptor = openSync(from, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(from, to);
  syncFolder(dirname(to));
}

export function isThere(path: string): boolean {
  return kindOf(path) !== "none";
}

/**
 * The header as the main file has it, or null when a connection may be open: closing any descriptor of a file drops
 * every POSIX lock this process holds on it, those of SQLite included, so the file is then not to be touched from here.
 */
export function readHeader(path: string): FileHeader | null {
  if (kindOf(`${path}-shm`) !== "none") return null;
  const bytes = Buffer.alloc(100);
  const descriptor = openSync(path, "r");
  let length: number;
  try {
    length = readSync(descriptor, bytes, 0, 100, 0);
  } finally {
    closeSync(descriptor);
  }
  return {
    isEmpty: length === 0,
    isSqlite: length === 100 && bytes.toString("latin1", 0, 16) === "SQLite format 3\0",
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
  };
}

/** Whether this user may write the file and make others beside it, as SQLite must even to read. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The process that holds the write lock, as Linux tells it; null when it cannot be known. */
export function lockHolder(path: string): number | null {
  try {
    const inode = lstatSync(`${path}-shm`).ino;
    // Byte 120 of the shared memory is SQLite's write lock.
    const held = new RegExp(`WRITE\\s+(\\d+)\\s+\\S+:${inode} 120 `).exec(readFileSync("/proc/locks", "utf8"));
    return held === null ? null : Number(held[1]);
  } catch {
    // Only an explanation is looked for: where there is none the lock error stands by itself.
    return null;
  }
}

function assertRegular(path: string): void {
  const kind = kindOf(path);
  if (kind === "other") throw refused("PATH_UNSAFE", `${path} is a link or no regular file.`, { path });
}

function kindOf(path: string): "none" | "file" | "other" {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return "none";
  return facts.isFile() ? "file" : "other";
}

function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
