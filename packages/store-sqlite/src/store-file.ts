import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { refused } from "@throughline/core/internal";
import { type FileHeader, headerOf } from "./file-facts.ts";
import { nativeCode } from "./sqlite-errors.ts";

/** Creates an empty file of mode 0600; one that is there already is left as it is. */
export function createPrivateFile(path: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(path, "wx", 0o600);
  } catch (error) {
    if (nativeCode(error) !== "EEXIST") throw error;
    return assertRegular(path);
  }
  try {
    fchmodSync(descriptor, 0o600);
  } finally {
    closeSync(descriptor);
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
 * The header of the main file, or null if a connection may be open. Closing any descriptor of a file drops every POSIX
 * lock that this process holds on it, also those of SQLite. So this process must not open the file then. To be called
 * in one thread at a time, in which none opens it.
 */
export function readHeader(path: string): FileHeader | null {
  if (kindOf(`${path}-shm`) !== "none") return null;
  const bytes = Buffer.alloc(100);
  const length = lookInto(path, (read) => read(bytes, 0)) ?? 0;
  return { ...headerOf(bytes, length), isWhole: endsWithPage(path, bytes.readUInt16BE(16)) };
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

/** What keeps this user from reading a database or its log, as the system calls it; null where nothing does, or it is not there. */
export function unreadableBecause(path: string): string | null {
  for (const each of [path, `${path}-wal`])
    try {
      accessSync(each, constants.R_OK);
    } catch (error) {
      const code = nativeCode(error);
      if (code === "EACCES" || code === "EPERM") return code;
    }
  return null;
}

/** The process that holds a lock from this byte of a file on, as Linux reports it; null if it is unknown. */
export function lockHolder(path: string, fromByte: number): number | null {
  try {
    const inode = lstatSync(path).ino;
    const held = new RegExp(`WRITE\\s+(\\d+)\\s+\\S+:${inode} ${fromByte} `).exec(readFileSync("/proc/locks", "utf8"));
    return held === null ? null : Number(held[1]);
  } catch {
    // Only an explanation is looked for: where there is none the lock error stands by itself.
    return null;
  }
}

/** A new folder for temporary files, private. */
export function makeTemporaryFolder(start: string): string {
  return mkdtempSync(join(tmpdir(), start));
}

/**
 * The folders that were made in the same place by the same user under the same start of a name, and how much earlier they
 * were changed. No links, and none that others may write into.
 */
export function temporaryFoldersBeside(own: string, start: string): readonly { path: string; olderByMs: number }[] {
  const { uid, mode, mtimeMs } = lstatSync(own);
  return readdirSync(dirname(own)).flatMap((name) => {
    const path = join(dirname(own), name);
    const facts = name.startsWith(start) && path !== own ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    // The mode says as well that it is a folder.
    if (facts === undefined || facts.uid !== uid || facts.mode !== mode) return [];
    return [{ path, olderByMs: mtimeMs - facts.mtimeMs }];
  });
}

/** Removes a folder with what is in it; links are removed, and not followed. */
export function removeFolder(path: string): void {
  // Whoever looks at a folder in this moment may put a file there that is not seen at first.
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 });
}

/** Another text whenever a file was written; empty when there is none. */
export function versionOf(path: string): string {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts === undefined ? "" : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;
}

/** The size of a file; 0 when it is not there. */
export function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** The type of the file system as Linux numbers it, the size of its blocks and what is free; null where it cannot be asked. */
export function fileSystemFacts(path: string): { type: number; blockBytes: number; freeBytes: number } | null {
  try {
    const { type, bsize: blockBytes, bavail } = statfsSync(dirname(path));
    return { type, blockBytes, freeBytes: bavail * blockBytes };
  } catch {
    return null;
  }
}

const sideFiles = ["-wal", "-shm", "-journal"] as const;

/** Removes a database that is not needed any more, or was never finished, with what SQLite has put beside it. */
export function removeDatabase(path: string): void {
  for (const side of [...sideFiles, ""]) rmSync(`${path}${side}`, { force: true });
}

export function removeFile(path: string): void {
  rmSync(path, { force: true });
}

export function emptyFile(path: string): void {
  truncateSync(path, 0);
}

/** What a file system says that knows no second names, or a system that lets nobody give one. */
const noLinks: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** A second name for a file, which others do not know, or its own where it can have one only; null when there is no such file. */
export function linkBeside(path: string): string | null {
  for (let number = 1; ; number++) {
    const name = `${path}.${process.pid}-${number}`;
    try {
      linkSync(path, name);
      return name;
    } catch (error) {
      if (nativeCode(error) === "ENOENT") return null;
      if (noLinks.has(nativeCode(error))) return path;
      if (nativeCode(error) !== "EEXIST") throw error;
    }
  }
}

/**
 * Lets a file be read piece by piece; null when it is not there, as a log whose last user has just closed it. Not for a
 * database: closing it would drop what locks this process has on it.
 */
export function lookInto<Result>(path: string, look: (read: ReadAt) => Result): Result | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    if (nativeCode(error) === "ENOENT") return null;
    throw error;
  }
  try {
    return look(readerOf(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

/** Reads into the buffer from a position; gives how many bytes there were. */
export type ReadAt = (buffer: Uint8Array, position: number) => number;
const readerOf =
  (descriptor: number): ReadAt =>
  (buffer, position) =>
    readSync(descriptor, buffer, { position });

/** A file as bytes; one that is not there has none. */
export interface RawFile {
  readonly read: ReadAt;
  readonly sizeBytes: number;
}

/** A database and its log as bytes, where SQLite does not read them. */
export function openRaw(path: string): {
  readonly file: RawFile;
  readonly log: RawFile;
  /** Not before the last connection of this process to the database is closed: it would lose its locks. */
  readonly close: () => void;
} {
  const opened: number[] = [];
  const raw = (name: string): RawFile => {
    if (!isThere(name)) return { read: () => 0, sizeBytes: 0 };
    const descriptor = openSync(name, "r");
    opened.push(descriptor);
    return { read: readerOf(descriptor), sizeBytes: sizeOf(name) };
  };
  const close = (): void => opened.splice(0).forEach((descriptor) => closeSync(descriptor));
  return { file: raw(path), log: raw(`${path}-wal`), close };
}

/** A private copy of a file, or of bytes, durably under its name at once or not at all. One that is there already stays. */
export function keepCopy(from: string | Uint8Array, to: string): void {
  if (isThere(to)) return;
  const part = `${to}.part`;
  removeFile(part);
  try {
    createPrivateFile(part);
    if (typeof from === "string") copyFileSync(from, part);
    else writeFileSync(part, from);
    chmodSync(part, 0o600);
    putInPlace(part, to);
  } catch (error) {
    removeFile(part);
    throw error;
  }
}

/** What is kept beside a store under its name with this ending: its damaged logs, or what proves that logs were deleted. */
export function keptBeside(path: string, ending: string): readonly string[] {
  return beside(path, (name) => name.startsWith(`${basename(path)}${ending}`) && !name.endsWith(".part")).toSorted();
}

/** The files in the folder of another one whose names pass. */
function beside(path: string, passes: (name: string) => boolean): readonly string[] {
  const names = readdirSync(dirname(path)).filter(passes);
  return names.map((name) => join(dirname(path), name));
}

/** Stands between the name of a store and the part that distinguishes its damaged logs. */
export const damagedLogEnding = ".damaged-log-";
export const lostLogEnding = ".lost-log-";

/**
 * Whether a process has the database open in WAL mode, as far as it is visible from outside: every connection keeps a
 * lock on the index of the log. Where the system does not show locks an index that is there counts as one in use.
 */
export function isInUse(path: string): boolean {
  const inode = lstatSync(`${path}-shm`, { throwIfNoEntry: false })?.ino;
  if (inode === undefined) return false;
  try {
    // The lock of a connection is on byte 128; the others are held by those who have that one.
    return new RegExp(`\\s\\S+:${inode} 1(?:2[0-8]) `).test(readFileSync("/proc/locks", "utf8"));
  } catch (error) {
    if (nativeCode(error) === "ENOENT" || nativeCode(error) === "EACCES") return true;
    throw error;
  }
}

/** Distinguishes a file from a later one with the same name; null if there is none. */
export function fileNumber(path: string): string | null {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts === undefined ? null : `${facts.dev}:${facts.ino}`;
}

/** A private copy of a database nobody writes to, with what its log holds. */
export function copyDatabase(from: string, to: string): void {
  // Nobody waits for a pipe.
  if (!statSync(from).isFile()) throw refused("PATH_UNSAFE", `${from} is not a regular file.`, { path: from });
  removeDatabase(to);
  const hasLog = sizeOf(`${from}-wal`) > 0;
  for (const side of hasLog ? ["", "-wal"] : [""]) {
    createPrivateFile(`${to}${side}`);
    copyFileSync(`${from}${side}`, `${to}${side}`);
    // The copy has got the rights of the original, which may be one that nobody may write.
    chmodSync(`${to}${side}`, 0o600);
  }
}

/**
 * Gives a finished file the name of a database. What was there is kept, side files and all, under its name with the
 * ending, which is given back.
 */
export function replaceFile(path: string, finished: string, ending: string): string {
  const target = `${path}.${ending}`;
  for (const side of [...sideFiles, ""]) {
    if (isThere(`${path}${side}`)) renameSync(`${path}${side}`, `${target}${side}`);
  }
  putInPlace(finished, path);
  return target;
}

/** Backups that lie beside a store under its name, the newest first. */
export function backupsBeside(path: string): readonly string[] {
  return beside(path, (name) => name.startsWith(`${basename(path)}.`) && name.endsWith(".backup"))
    .filter((each) => kindOf(each) === "file")
    .toSorted((one, other) => lstatSync(other).mtimeMs - lstatSync(one).mtimeMs);
}

/** The processes that read the log, as Linux reports them: their marks keep it from being cut. */
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

/** @throws {ThroughlineError} PATH_UNSAFE */
export function assertRegular(path: string): void {
  const kind = kindOf(path);
  if (kind === "other") throw refused("PATH_UNSAFE", `${path} is a link or no regular file.`, { path });
}

function kindOf(path: string): "none" | "file" | "other" {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return "none";
  return facts.isFile() ? "file" : "other";
}

/**
 * Makes a folder with those it is in, for their owner only, each with its name on the disk. One by one: Node's
 * recursive mkdir reports ENOENT for a disk that takes no writes. Where the system reports that for any folder, as in
 * /proc, it never ends.
 * @throws what the system says of the first one that cannot be made
 */
export function makeFolders(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Somebody else was faster.
    if (nativeCode(error) !== "EEXIST") throw error;
  }
  syncFolder(parent);
}

export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
