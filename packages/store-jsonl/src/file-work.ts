import { ThroughlineError, type ErrorCode, type WriteOutcome } from "@throughline/core";
import { quote, refused, systemClock } from "@throughline/core/internal";
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

/** For a path that has a file where a folder belongs. */
export const notAFolderRemedy = "Move the file away, or give the store the path of a folder.";

/** What may not even be read is more than read-only. */
const codesOfReading: ReadonlyMap<string, ErrorCode> = new Map([
  ...codes,
  ["EACCES", "STORE_IO"],
  ["EPERM", "STORE_IO"],
]);

/** An operating system error as one of ours; errors that are ours already pass. */
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

/** What comes after a commit: when it fails, nobody may believe that nothing was done. */
export function afterCommit<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw outcomeUnknown(error, path);
  }
}

/** The error of what comes after a commit. */
export function outcomeUnknown(error: unknown, path: string): ThroughlineError {
  const ours = fileError(error, path);
  if (ours.outcome === "unknown") return ours;
  const { code, message, details, remedy } = ours;
  return new ThroughlineError(code, message, { outcome: "unknown", cause: error, details, remedy });
}

/** File times move in ticks of up to this number of milliseconds. */
export const timeGrainMs = 50;

/** How long ago a file was changed, by the system's clock. */
export function ageMsOf({ modifiedNs }: Pick<FileFacts, "modifiedNs">): number {
  return systemClock.nowMs() - Number(modifiedNs / 1_000_000n);
}

/** The folder a path is in. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** Folders whose last flush failed: a name in them may be lost with everything that is written to it afterwards. */
const unflushedFolders = new WeakMap<Files, Set<string>>();

/** Puts the names in a folder on the disk. One that fails is tried again by `flushFolders`. */
export function flushFolder(files: Files, path: string): void {
  const waiting = unflushedFolders.get(files) ?? new Set<string>();
  unflushedFolders.set(files, waiting.add(path));
  files.flushFolder(path);
  waiting.delete(path);
}

/** Before anything is written: flushes again what could not be flushed. Costs nothing when there is nothing. */
export function flushFolders(files: Files): void {
  for (const path of unflushedFolders.get(files) ?? []) withFileErrors(path, () => flushFolder(files, path));
}

/** Makes a folder with those it is in, each with its name on the disk. @throws {ThroughlineError} STORE_IO, STORE_READ_ONLY */
export function makeFolders(files: Files, path: string): void {
  const parent = folderOf(path);
  if (files.facts(parent) === null) makeFolders(files, parent);
  withFileErrors(path, () => {
    files.makeFolder(path);
    flushFolder(files, parent);
  });
}

/** Runs file work and gives its failures our names. */
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

/** Bytes from one position to another. Fewer when the file ends before. */
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

/** The whole of a small file; null when it is not there. Its size is not trusted: files of /proc say 0. */
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

/** What a file is that was just opened, which is closed again where nobody can tell. */
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

/** @throws {ThroughlineError} STORE_IO for what may not be read */
export function openToRead(files: Files, path: string): number {
  try {
    return files.open(path, "read");
  } catch (error) {
    throw readError(error, path);
  }
}

/** A handle to read, or null when there is no such file. @throws {ThroughlineError} PATH_UNSAFE for what is not a regular file */
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

/** The error of something else under the name of a file. */
export function notAFile(path: string): ThroughlineError {
  return refused("PATH_UNSAFE", `${quote(path)} is not a regular file.`, { path });
}

/**
 * Writes all bytes at the end of an append handle. What was written of them before a failure is cut off again; when
 * even that fails nobody can say what is there, and the error's outcome is "unknown".
 */
export function appendAll(files: Files, handle: number, bytes: Uint8Array, sizeBefore: number, path: string): void {
  let written = 0;
  try {
    while (written < bytes.length) {
      const count = files.write(handle, bytes.subarray(written));
      // A short write says nothing of its cause; the next attempt does.
      written += count;
      if (count === 0) throw nothingWritten();
    }
  } catch (error) {
    throw takenBack(files, handle, { bytes, written, sizeBefore, path }, error);
  }
}

/** A write that failed at the end of a file. */
interface FailedWrite {
  readonly bytes: Uint8Array;
  /** How many of them the system has taken. */
  readonly written: number;
  readonly sizeBefore: number;
  readonly path: string;
}

/** Cuts off what a failed write has left. The error of the write: its outcome is "unknown" where that is not possible. */
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

/** Not what is another's: a program may append to a transcript without our lock. */
function takeBack(files: Files, handle: number, { bytes, written, sizeBefore }: FailedWrite): void {
  const left = readRange(files, handle, sizeBefore, files.factsOf(handle).sizeBytes);
  if (left.length === 0) return;
  if (Buffer.compare(left, bytes.subarray(0, left.length)) === 0) files.truncate(handle, sizeBefore);
  else if (written > 0) throw new Error("another program has written to the file meanwhile");
}

/** The error of a call that wrote nothing and gave no reason. */
export function nothingWritten(): Error {
  return Object.assign(new Error("nothing could be written"), { code: "EIO" });
}

/** So much is copied at once. */
export const copyBytes: number = 1024 * 1024;

/** Gives parts on in pieces that are worth a write each. */
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

/** Puts a file in place of another, whole or not at all, also after a power cut. */
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
