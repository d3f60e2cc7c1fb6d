import { refused } from "@throughline/core/store";
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import process from "node:process";
import { nativeCode } from "./sqlite-errors.ts";

/** What the first bytes of a file say, or that there are none. */
export interface FileHeader {
  readonly isEmpty: boolean;
  readonly isSqlite: boolean;
  readonly applicationId: number;
  readonly userVersion: number;
  /** False for a file without a log that ends within a page: SQLite would take the rest of it for zeros. */
  readonly isWhole: boolean;
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
  if (kindOf(path) !== "none") return assertNotEmptied(path, create);
  assertNoRestore(path);
  if (!create) throw refused("STORE_NOT_FOUND", `There is no store at ${path}.`, { path });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  createPrivateFile(path);
  syncFolder(dirname(path));
}

/**
 * Ours is never empty once it has a log, and SQLite would delete the log of an empty file, with all that was acknowledged
 * in it. An empty file without one is a store that has not begun.
 */
function assertNotEmptied(path: string, create: boolean): void {
  if (sizeOf(path) > 0) return;
  if (sizeOf(`${path}-wal`) > 0)
    throw refused("STORE_CORRUPT", `${path} is empty, but its log is not; neither was changed.`, { path });
  if (!create) throw refused("STORE_NOT_FOUND", `There is no store at ${path}: the file is empty.`, { path });
}

/** While a backup takes the place of a damaged file there is none for a moment: no new store may begin in it. */
function assertNoRestore(path: string): void {
  const mark = `${path}.recovery`;
  if (!isThere(mark)) return;
  if (isAlive(Number(readFileSync(mark, "utf8"))))
    throw refused("STORE_LOCKED", `${path} is being restored from a backup.`, { path });
  throw refused("STORE_CORRUPT", `Restoring ${path} from a backup was interrupted.`, { path });
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
    isWhole: endsWithPage(path, bytes.readUInt16BE(16)),
  };
}

/** While there is a log or a journal the file may be in the middle of a write, which either of them completes. */
function endsWithPage(path: string, pageBytes: number): boolean {
  if (sizeOf(`${path}-wal`) > 0 || kindOf(`${path}-journal`) !== "none") return true;
  // 1 stands for 65,536.
  return pageBytes === 0 || sizeOf(path) % (pageBytes === 1 ? 65_536 : pageBytes) === 0;
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

/** The size of a file; 0 when it is not there. */
export function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Types of file systems that reach over a network, as Linux numbers them. */
const remoteFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9P"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x0bd00bd0, "Lustre"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x786f4256, "a folder shared with a virtual machine's host"],
]);

/** The name of a file system that is or may be remote; null for the others. */
export function remoteFileSystem(type: number): string | null {
  return remoteFileSystems.get(type >>> 0) ?? null;
}

/** Whether the file lies on a network file system, as far as the system tells. */
export function fileSystemOf(path: string): string | null {
  try {
    return remoteFileSystem(statfsSync(dirname(path)).type);
  } catch {
    // Where it cannot be asked nothing is known against it.
    return null;
  }
}

export function removeFile(path: string): void {
  rmSync(path, { force: true });
}

/**
 * Puts a private copy of a finished file in the place of a database. What was there is kept, side files and all, under
 * its name with the ending, which is given back.
 */
export function replaceFile(path: string, from: string, ending: string): string {
  const target = `${path}.${ending}`;
  const part = `${path}.${process.pid}.part`;
  createPrivateFile(part);
  copyFileSync(from, part);
  for (const side of ["-wal", "-shm", "-journal", ""]) {
    if (isThere(`${path}${side}`)) renameSync(`${path}${side}`, `${target}${side}`);
  }
  putInPlace(part, path);
  return target;
}

/** Backups that lie beside a store under its name, the newest first. */
export function backupsBeside(path: string): readonly string[] {
  const folder = dirname(path);
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.`) && name.endsWith(".backup"))
    .map((name) => join(folder, name))
    .filter((each) => kindOf(each) === "file")
    .toSorted((one, other) => lstatSync(other).mtimeMs - lstatSync(one).mtimeMs);
}

/** The copies that were made of a store by itself, the newest first. Their names say when. */
export function automaticBackups(path: string): readonly { readonly path: string; readonly madeAtMs: number }[] {
  return backupsBeside(path)
    .filter((each) => each.endsWith(".auto.backup"))
    .map((each) => ({ path: each, madeAtMs: lstatSync(each).mtimeMs }));
}

/** Lets a file say that this process is at something, until what is given back is called; null when another one is. */
export function claim(path: string): (() => void) | null {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (nativeCode(error) !== "EEXIST") throw error;
    if (isAlive(Number(readFileSync(path, "utf8")))) return null;
    // Whoever was at it was killed; what it had begun is begun again.
    writeFileSync(path, String(process.pid));
  }
  return () => rmSync(path, { force: true });
}

/** Runs the work while a file says that this process is at it; false when another one is. */
export function alone(path: string, work: () => void): boolean {
  const release = claim(path);
  if (release === null) return false;
  try {
    work();
  } finally {
    release();
  }
  return true;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return nativeCode(error) !== "ESRCH";
  }
}

/** The processes that read the log, as Linux tells it: their marks keep it from being cut. */
export function logReaders(path: string): readonly number[] {
  try {
    const inode = lstatSync(`${path}-shm`).ino;
    const marks = new RegExp(`READ\\s+(\\d+)\\s+\\S+:${inode} 12[3-7] `, "g");
    return [...new Set([...readFileSync("/proc/locks", "utf8").matchAll(marks)].map(([, pid]) => Number(pid)))];
  } catch {
    // As with the holder of the lock: an explanation, where there is one.
    return [];
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
