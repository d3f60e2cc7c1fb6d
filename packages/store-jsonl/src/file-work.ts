import { type ErrorCode, ThroughlineError } from "@throughline/core";
import { quote, refused, systemClock, type WriteOutcome } from "@throughline/core/internal";
import type { FileFacts, Files } from "./files.ts";

const codes: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ["ENOSPC", "STORE_FULL"],
  ["EDQUOT", "STORE_FULL"],
  ["EROFS", "STORE_READ_ONLY"],
  ["EACCES", "STORE_READ_ONLY"],
  ["EPERM", "STORE_READ_ONLY"],
  ["ELOOP", "PATH_UNSAFE"],
  ["ENOTDIR", "PATH_UNSAFE"],
]);

export const notAFolderRemedy = "Move the file away, or give the store the path of a folder.";

/** A path that cannot even be read is an I/O error rather than a read-only store. */
const codesOfReading: ReadonlyMap<string, ErrorCode> = new Map([
  ...codes,
  ["EACCES", "STORE_IO"],
  ["EPERM", "STORE_IO"],
]);

export function fileError(cause: unknown, path: string, outcome: WriteOutcome = "not-applied"): ThroughlineError {
  return ourError(cause, path, outcome, codes);
}

function ourError(
  cause: unknown,
  path: string,
  outcome: WriteOutcome,
  codesOf: ReadonlyMap<string, ErrorCode>,
): ThroughlineError {
  if (ThroughlineError.isInstance(cause)) return cause;
  const { code: errno = "unknown", message = String(cause) } = cause as NodeJS.ErrnoException;
  const code = codesOf.get(errno) ?? "STORE_IO";
  const remedy = remedyFor(errno, path);
  return new ThroughlineError(code, `${quote(path)}: ${message}.`, {
    cause,
    outcome,
    details: { path, errno },
    ...(remedy === null ? {} : { remedy }),
  });
}

function remedyFor(errno: string, path: string): string | null {
  if (errno === "ENOTDIR") return notAFolderRemedy;
  if (errno !== "EACCES" && errno !== "EPERM") return null;
  return `This user may not use the path. As its owner, run: chmod u+rwX ${shellQuote(folderOf(path))} ${shellQuote(path)}`;
}

function shellQuote(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}

/** Runs work that follows a commit. Its failure has the outcome "unknown", because the commit was applied. */
export function afterCommit<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw outcomeUnknown(error, path);
  }
}

/** Waits for work that follows a commit. Its failure has the outcome "unknown", because the commit was applied. */
export async function afterCommitAsync<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw outcomeUnknown(error, path);
  }
}

export function outcomeUnknown(error: unknown, path: string): ThroughlineError {
  const ours = fileError(error, path);
  if (ours.outcome === "unknown") return ours;
  const { code, message, details, remedy } = ours;
  return new ThroughlineError(code, message, { outcome: "unknown", cause: error, details, remedy });
}

/**
 * File times advance in ticks of at most this many milliseconds. Two changes within one tick may have the same time.
 */
export const timeGrainMs = 50;

export function ageMsOf({ modifiedNs }: Pick<FileFacts, "modifiedNs">): number {
  return systemClock.nowMs() - Number(modifiedNs / 1_000_000n);
}

export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/**
 * Holds folders whose last flush failed. A name in them may be lost with everything that is written to the file
 * afterwards.
 */
const unflushedFolders = new WeakMap<Files, Set<string>>();

/** Flushes the names in a folder. `flushFolders` repeats a failed flush. */
export function flushFolder(files: Files, path: string): void {
  const waiting = unflushedFolders.get(files) ?? new Set<string>();
  unflushedFolders.set(files, waiting.add(path));
  files.flushFolder(path);
  waiting.delete(path);
}

/** Does the same as `flushFolder` without holding the thread. */
export async function flushFolderLater(files: Files, path: string): Promise<void> {
  const waiting = unflushedFolders.get(files) ?? new Set<string>();
  unflushedFolders.set(files, waiting.add(path));
  await files.flushFolderLater(path);
  waiting.delete(path);
}

/** Repeats failed flushes of folders. Call it before anything is written; it costs nothing when there are none. */
export function flushFolders(files: Files): void {
  for (const path of unflushedFolders.get(files) ?? []) withFileErrors(path, () => flushFolder(files, path));
}

/**
 * Creates a folder with its parents, and flushes the name of each.
 * @throws {ThroughlineError} STORE_IO, STORE_READ_ONLY
 */
export function makeFolders(files: Files, path: string): void {
  const parent = folderOf(path);
  if (files.facts(parent) === null) makeFolders(files, parent);
  withFileErrors(path, () => {
    files.makeFolder(path);
    flushFolder(files, parent);
  });
}

export function withFileErrors<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw fileError(error, path);
  }
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
}

/** Reads a range. It returns fewer bytes when the file ends before `to`. */
export function readRange(files: Files, handle: number, from: number, to: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
  let filled = 0;
  while (filled < bytes.length) {
    const count = files.read(handle, bytes.subarray(filled), from + filled);
    if (count === 0) break;
    filled += count;
  }
  return bytes.subarray(0, filled);
}

/**
 * Reads a small file, or returns null when it does not exist. The size is not used, because files of /proc report 0.
 */
export function readWhole(files: Files, path: string): Uint8Array | null {
  const handle = openIfThere(files, path);
  if (handle === null) return null;
  try {
    const parts: Uint8Array[] = [];
    for (let position = 0; ;) {
      const part = readRange(files, handle, position, position + 65_536);
      if (part.length === 0) return Buffer.concat(parts);
      parts.push(part);
      position += part.length;
    }
  } finally {
    files.close(handle);
  }
}

/** Returns the facts of a file that was just opened; closes the file when they cannot be read. */
export function factsOfOpened(files: Files, handle: number): FileFacts {
  try {
    return files.factsOf(handle);
  } catch (error) {
    files.close(handle);
    throw error;
  }
}

function readError(error: unknown, path: string): ThroughlineError {
  return ourError(error, path, "not-applied", codesOfReading);
}

/** @throws {ThroughlineError} STORE_IO for a path that may not be read */
export function openToRead(files: Files, path: string): number {
  try {
    return files.open(path, "read");
  } catch (error) {
    throw readError(error, path);
  }
}

/**
 * Opens a file, or returns null when it does not exist.
 * @throws {ThroughlineError} PATH_UNSAFE for a path that is not a regular file
 */
export function openIfThere(files: Files, path: string, mode: "append" | "read" = "read"): number | null {
  let handle: number;
  try {
    handle = files.open(path, mode);
  } catch (error) {
    if (isMissing(error)) return null;
    throw mode === "read" ? readError(error, path) : fileError(error, path);
  }
  if (path.startsWith("/proc/") || withFileErrors(path, () => factsOfOpened(files, handle)).kind === "file")
    return handle;
  files.close(handle);
  throw notAFile(path);
}

export function notAFile(path: string): ThroughlineError {
  return refused("PATH_UNSAFE", `${quote(path)} is not a regular file.`, { path });
}

/**
 * Writes all bytes at the end of an append handle. After a failure the written part is truncated. When that fails too,
 * the content is uncertain, and the error's outcome is "unknown".
 */
export function appendAll(files: Files, handle: number, bytes: Uint8Array, sizeBefore: number, path: string): void {
  let written = 0;
  try {
    while (written < bytes.length) {
      const count = files.write(handle, bytes.subarray(written));
      // A short write does not state its cause, so the rest is written again to get the error.
      written += count;
      if (count === 0) throw nothingWritten();
    }
  } catch (error) {
    throw takenBack(files, handle, { bytes, written, sizeBefore, path }, error);
  }
}

interface FailedWrite {
  readonly bytes: Uint8Array;
  readonly written: number;
  readonly sizeBefore: number;
  readonly path: string;
}

/**
 * Truncates what a failed write has left. Returns the write's error, with the outcome "unknown" when the truncation
 * failed.
 */
export function takenBack(files: Files, handle: number, failed: FailedWrite, error: unknown): ThroughlineError {
  const { path } = failed;
  try {
    takeBack(files, handle, failed);
  } catch (truncateError) {
    const both = new AggregateError([error, truncateError], "a write failed and could not be taken back");
    return fileError(both, path, "unknown");
  }
  return fileError(error, path);
}

/** Never truncates bytes of another program, which may append to a transcript without the store's lock. */
function takeBack(files: Files, handle: number, { bytes, written, sizeBefore }: FailedWrite): void {
  const left = readRange(files, handle, sizeBefore, files.factsOf(handle).sizeBytes);
  if (left.length === 0) return;
  if (Buffer.compare(left, bytes.subarray(0, left.length)) === 0) files.truncate(handle, sizeBefore);
  else if (written > 0) throw new Error("another program has written to the file meanwhile");
}

export function nothingWritten(): Error {
  return Object.assign(new Error("nothing could be written"), { code: "EIO" });
}

export const copyBytes: number = 1024 * 1024;

/** Combines small parts into chunks, so that each write is worth its system call. */
export function gather(parts: Iterable<string | Uint8Array>, append: (bytes: Uint8Array) => void): void {
  const gathered = Buffer.allocUnsafe(copyBytes);
  let filled = 0;
  const giveOn = (): void => {
    if (filled > 0) append(gathered.subarray(0, filled));
    filled = 0;
  };
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    if (bytes.length > gathered.length - filled) giveOn();
    if (bytes.length > gathered.length) append(bytes);
    else {
      gathered.set(bytes, filled);
      filled += bytes.length;
    }
  }
  giveOn();
}

/** Replaces a file as a whole. After a power cut either the old or the new content is there. */
export function replaceFile(
  files: Files,
  temporary: string,
  path: string,
  write: (append: (bytes: Uint8Array) => void) => void,
): void {
  withFileErrors(path, () => {
    files.remove(temporary);
    const handle = files.open(temporary, "create");
    try {
      let size = 0;
      write((bytes) => {
        appendAll(files, handle, bytes, size, temporary);
        size += bytes.length;
      });
      files.flushNow(handle);
    } catch (error) {
      files.close(handle);
      files.remove(temporary);
      throw error;
    }
    files.close(handle);
    files.rename(temporary, path);
  });
  afterCommit(path, () => flushFolder(files, folderOf(path)));
}
