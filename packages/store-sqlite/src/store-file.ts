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

/** Creates an empty file of mode 0600. An existing file stays as it is. */
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
 * Reads the header of the main file, or returns null if a connection may be open. Closing any descriptor of a file
 * drops every POSIX lock that this process holds on it, also the locks of SQLite. So this process must not open the
 * file then. It must be called in one thread at a time, while no other thread opens the file.
 */
export function readHeader(path: string): FileHeader | null {
  if (kindOf(`${path}-shm`) !== "none") return null;
  const bytes = Buffer.alloc(100);
  const length = lookInto(path, (read) => read(bytes, 0)) ?? 0;
  return { ...headerOf(bytes, length), isWhole: endsWithPage(path, bytes.readUInt16BE(16)) };
}

/** While a log or a journal exists, the file may be in the middle of a write that the log or the journal completes. */
function endsWithPage(path: string, pageBytes: number): boolean {
  if (sizeOf(`${path}-wal`) > 0 || kindOf(`${path}-journal`) !== "none") return true;
  // The value 1 means 65,536.
  return pageBytes === 0 || sizeOf(path) % (pageBytes === 1 ? 65_536 : pageBytes) === 0;
}

/** Returns whether this user may write the file and its folder, which SQLite must do even to read. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns the system's code for what keeps this user from reading a database or its log, or null. */
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

/** Returns the process that holds a lock at this byte of a file, as Linux reports it, or null if it is unknown. */
export function lockHolder(path: string, fromByte: number): number | null {
  try {
    const inode = lstatSync(path).ino;
    const held = new RegExp(`WRITE\\s+(\\d+)\\s+\\S+:${inode} ${fromByte} `).exec(readFileSync("/proc/locks", "utf8"));
    return held === null ? null : Number(held[1]);
  } catch {
    // The process id only explains a lock error, so the error is reported without it.
    return null;
  }
}

/** Creates a private folder for temporary files. */
export function makeTemporaryFolder(start: string): string {
  return mkdtempSync(join(tmpdir(), start));
}

/**
 * Returns folders of the same user in the same place whose names begin the same way, with the difference of their
 * times. Links and folders that other users may write to are left out.
 */
export function temporaryFoldersBeside(own: string, start: string): readonly { path: string; olderByMs: number }[] {
  const { uid, mode, mtimeMs } = lstatSync(own);
  return readdirSync(dirname(own)).flatMap((name) => {
    const path = join(dirname(own), name);
    const facts = name.startsWith(start) && path !== own ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    // The mode also states that the entry is a folder.
    if (facts === undefined || facts.uid !== uid || facts.mode !== mode) return [];
    return [{ path, olderByMs: mtimeMs - facts.mtimeMs }];
  });
}

/** Removes a folder with its content. Links are removed, and not followed. */
export function removeFolder(path: string): void {
  // Another process that looks at the folder may create a file in it at this moment, so the removal is tried again.
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 10 });
}

/** Returns a text that changes whenever the file is written. It is empty without a file. */
export function versionOf(path: string): string {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts === undefined ? "" : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;
}

export function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Returns the type of the file system as Linux numbers it, its block size and its free bytes, or null where they are
 * unknown.
 */
export function fileSystemFacts(path: string): { type: number; blockBytes: number; freeBytes: number } | null {
  try {
    const { type, bsize: blockBytes, bavail } = statfsSync(dirname(path));
    return { type, blockBytes, freeBytes: bavail * blockBytes };
  } catch {
    return null;
  }
}

const sideFiles = ["-wal", "-shm", "-journal"] as const;

/** Removes a database that is not needed any more or was never finished, with the side files of SQLite. */
export function removeDatabase(path: string): void {
  for (const side of [...sideFiles, ""]) rmSync(`${path}${side}`, { force: true });
}

export function removeFile(path: string): void {
  rmSync(path, { force: true });
}

export function emptyFile(path: string): void {
  truncateSync(path, 0);
}

/** These errors mean that a file system has no second names, or that the system does not allow them. */
const noLinks: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/**
 * Gives a file a second name that no other process knows. Returns that name, the path itself where second names do not
 * exist, or null without a file.
 */
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
 * Reads a file piece by piece. Returns null when there is no file, for example a log whose last user has just closed
 * it. It must not be used for a database, because closing the file drops the locks that this process has on it.
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

/** Reads into the buffer from a position. Returns the number of bytes that were read. */
export type ReadAt = (buffer: Uint8Array, position: number) => number;
const readerOf =
  (descriptor: number): ReadAt =>
  (buffer, position) =>
    readSync(descriptor, buffer, { position });

/** Holds a file as bytes. A missing file has no bytes. */
export interface RawFile {
  readonly read: ReadAt;
  readonly sizeBytes: number;
}

/** Opens a database and its log as bytes, without SQLite. */
export function openRaw(path: string): {
  readonly file: RawFile;
  readonly log: RawFile;
  /**
   * Must be called after the last connection of this process to the database is closed, because it drops the locks of
   * the process.
   */
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

/** Copies a file or bytes to a private file, durably and at once or not at all. An existing file stays. */
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

/** Returns the files beside a store with this ending: its damaged logs, or the proofs that logs were deleted. */
export function keptBeside(path: string, ending: string): readonly string[] {
  return beside(path, (name) => name.startsWith(`${basename(path)}${ending}`) && !name.endsWith(".part")).toSorted();
}

function beside(path: string, passes: (name: string) => boolean): readonly string[] {
  const names = readdirSync(dirname(path)).filter(passes);
  return names.map((name) => join(dirname(path), name));
}

/** Stands between the name of a store and the part that distinguishes its damaged logs. */
export const damagedLogEnding = ".damaged-log-";
export const lostLogEnding = ".lost-log-";

/**
 * Returns whether a process has the database open in WAL mode, as far as that is visible: every connection holds a lock
 * on the index of the log. Where the system does not show locks, an existing index counts as one in use.
 */
export function isInUse(path: string): boolean {
  const inode = lstatSync(`${path}-shm`, { throwIfNoEntry: false })?.ino;
  if (inode === undefined) return false;
  try {
    // Every connection locks byte 128. Only such a connection takes the other locks.
    return new RegExp(`\\s\\S+:${inode} 1(?:2[0-8]) `).test(readFileSync("/proc/locks", "utf8"));
  } catch (error) {
    if (nativeCode(error) === "ENOENT" || nativeCode(error) === "EACCES") return true;
    throw error;
  }
}

/** Returns a text that distinguishes a file from a later one with the same name, or null without a file. */
export function fileNumber(path: string): string | null {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts === undefined ? null : `${facts.dev}:${facts.ino}`;
}

/** Makes a private copy of a database that no process writes, with the content of its log. */
export function copyDatabase(from: string, to: string): void {
  // Opening a pipe would wait for its writer.
  if (!statSync(from).isFile()) throw refused("PATH_UNSAFE", `${from} is not a regular file.`, { path: from });
  removeDatabase(to);
  const hasLog = sizeOf(`${from}-wal`) > 0;
  for (const side of hasLog ? ["", "-wal"] : [""]) {
    createPrivateFile(`${to}${side}`);
    copyFileSync(`${from}${side}`, `${to}${side}`);
    // The copy has the mode of the original, which may forbid writing.
    chmodSync(`${to}${side}`, 0o600);
  }
}

/**
 * Gives a finished file the name of a database. The replaced file and its side files are kept under that name with the
 * ending, which is returned.
 */
export function replaceFile(path: string, finished: string, ending: string): string {
  const target = `${path}.${ending}`;
  for (const side of [...sideFiles, ""]) {
    if (isThere(`${path}${side}`)) renameSync(`${path}${side}`, `${target}${side}`);
  }
  putInPlace(finished, path);
  return target;
}

/** Returns the backups beside a store under its name, the newest first. */
export function backupsBeside(path: string): readonly string[] {
  return beside(path, (name) => name.startsWith(`${basename(path)}.`) && name.endsWith(".backup"))
    .filter((each) => kindOf(each) === "file")
    .toSorted((one, other) => lstatSync(other).mtimeMs - lstatSync(one).mtimeMs);
}

/** Returns the processes that read the log, as Linux reports them. Their marks keep the log from being cut. */
export function logReaders(path: string): readonly number[] {
  try {
    const inode = lstatSync(`${path}-shm`).ino;
    const marks = new RegExp(`READ\\s+(\\d+)\\s+\\S+:${inode} 12[3-7] `, "g");
    return [...new Set([...readFileSync("/proc/locks", "utf8").matchAll(marks)].map(([, pid]) => Number(pid)))];
  } catch {
    // The process ids only explain a finding, so it is reported without them.
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
 * Creates a folder and its parents for their owner only, each with its name on the disk. They are created one by one,
 * because Node's recursive mkdir reports ENOENT for a disk that takes no writes. Where the system reports that for any
 * folder, as in /proc, it never ends.
 * @throws the error of the system for the first folder that cannot be created
 */
export function makeFolders(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process has created the folder meanwhile.
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
