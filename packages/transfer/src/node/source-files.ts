import { close, constants, fstat, lstat, lstatSync, open, opendir, read, realpath, stat } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { type ErrorCode, ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import type { ListedName } from "@throughline/openclaw-format/internal";

/**
 * Reads an imported file; it is never opened for writing.
 * No symbolic link is followed in the file's name, because a link in a sessions directory could lead to any file of the
 * machine.
 */
export interface SourceFile {
  readonly path: string;
  /** Holds the size at opening; bytes that are written later are not read. */
  readonly sizeBytes: number;
  /**
   * Yields bytes from an offset to the size or to `toBytes`. All chunks share one buffer, so callers copy bytes they
   * keep.
   */
  chunks(options?: { readonly fromBytes?: number; readonly toBytes?: number }): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

const openFile = promisify(open);
const statFile = promisify(fstat);
const readBytes = promisify(read);
const closeFile = promisify(close);
const openDirectory = promisify(opendir);

const chunkBytes = 256 * 1024;
/** Limits texts that are read as a whole. */
const maxTextBytes = 64 * 1024 * 1024;

/** @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE */
export async function openSource(path: string): Promise<SourceFile> {
  // Without O_NONBLOCK, opening a named pipe would wait forever for a writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await openFile(path, flags).catch((error: unknown) => throwFileError(path, error));
  const facts = await statFile(handle);
  if (!facts.isFile()) {
    await closeFile(handle);
    throw new ThroughlineError("FILE_UNREADABLE", `${quote(path)} is not a regular file.`, { details: { path } });
  }
  return {
    path,
    sizeBytes: facts.size,
    async *chunks({ fromBytes = 0, toBytes = facts.size } = {}) {
      // Most transcripts are smaller than a chunk, and there may be many, so the buffer is no larger than needed.
      const buffer = new Uint8Array(Math.max(0, Math.min(chunkBytes, toBytes - fromBytes)));
      for (let at = fromBytes; at < toBytes;) {
        const wanted = Math.min(chunkBytes, toBytes - at);
        const { bytesRead } = await readBytes(handle, buffer, 0, wanted, at).catch((error: unknown) =>
          throwFileError(path, error),
        );
        if (bytesRead === 0)
          throw new ThroughlineError("FILE_UNREADABLE", `${quote(path)} became shorter while it was read.`, {
            details: { path },
          });
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    },
    close: () => closeFile(handle),
  };
}

/**
 * Passes every name in a directory to `take` without keeping the names in memory. Returns false when the path is no
 * directory.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, and errors of `take`
 */
export async function eachSourceName(path: string, take: (entry: ListedName) => void): Promise<boolean> {
  try {
    const directory = await openDirectory(path, { bufferSize: 256 });
    for await (const entry of directory) take({ name: entry.name, isDirectory: entry.isDirectory() });
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return false;
    return throwFileError(path, error);
  }
}

const realPath = promisify(realpath);
const linkStat = promisify(lstat);
const followedStat = promisify(stat);

/** True if a path is a directory or below it, after links are resolved. False when either path is missing. */
export async function isInside(path: string, directory: string): Promise<boolean> {
  try {
    const [inner, outer] = await Promise.all([realPath(path), realPath(directory)]);
    return inner === outer || inner.startsWith(`${outer}${sep}`);
  } catch (error) {
    // The code that opens the path reports why it cannot be resolved.
    if (codeOf(error) === "unknown") throw error;
    return false;
  }
}

/** Resolves links; returns the path unchanged if it does not exist. */
export async function canonicalPath(path: string): Promise<string> {
  try {
    return await realPath(path);
  } catch (error) {
    if (codeOf(error) === "unknown") throw error;
    return path;
  }
}

/** Resolves the links of the part of a path that exists. */
export async function nearestRealPath(path: string): Promise<string> {
  const names: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realPath(at), ...names);
    } catch (error) {
      if (codeOf(error) === "unknown") throw error;
      if (dirname(at) === at) return path;
      names.unshift(basename(at));
    }
  }
}

/** Holds what the system states about a file without opening it. */
export interface FileFacts {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Changes with every write, and no program can set it. */
  readonly changedMs: number;
  readonly inode: number;
  readonly isFolder: boolean;
}

/** Follows no link. Null when the path is missing or cannot be reached. */
export function fileFacts(path: string): FileFacts | null {
  try {
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (facts === undefined) return null;
    const { size, mtimeMs, ctimeMs, ino } = facts;
    return {
      sizeBytes: size,
      modifiedMs: mtimeMs,
      changedMs: ctimeMs,
      inode: ino,
      isFolder: facts.isDirectory(),
    };
  } catch (error) {
    if (codeOf(error) === "unknown") throw error;
    return null;
  }
}

/** A dangling link counts too. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await linkStat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "unknown") throw error;
    return codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR";
  }
}

/** Compares after links are resolved. False when either path is missing. */
export async function isSamePath(path: string, other: string): Promise<boolean> {
  return (await isInside(path, other)) && (await isInside(other, path));
}

/** Follows links. False when the path is missing or cannot be reached. */
export async function isFolder(path: string): Promise<boolean> {
  const facts = await followedStat(path).catch(() => null);
  return facts?.isDirectory() === true;
}

/** False for a link. Opening the file reports any other problem. */
export async function isFile(path: string): Promise<boolean> {
  try {
    return (await linkStat(path)).isFile();
  } catch (error) {
    if (codeOf(error) === "unknown") throw error;
    return false;
  }
}

/** @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE, PATH_UNSAFE */
export async function readSourceText(path: string): Promise<string> {
  const source = await openSource(path);
  try {
    if (source.sizeBytes > maxTextBytes)
      throw new ThroughlineError("FILE_UNREADABLE", `${quote(path)} is too large to be read whole.`, {
        details: { path },
      });
    const parts: Uint8Array[] = [];
    for await (const chunk of source.chunks()) parts.push(new Uint8Array(chunk));
    return Buffer.concat(parts).toString("utf8");
  } finally {
    await source.close();
  }
}

const codes: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "FILE_NOT_FOUND",
  ENOTDIR: "FILE_NOT_FOUND",
  ELOOP: "PATH_UNSAFE",
  EMLINK: "PATH_UNSAFE",
};

function throwFileError(path: string, cause: unknown): never {
  if (ThroughlineError.isInstance(cause)) throw cause;
  const systemCode = codeOf(cause);
  const code = codes[systemCode] ?? "FILE_UNREADABLE";
  const why =
    code === "FILE_NOT_FOUND"
      ? path.includes("\uFFFD")
        ? "does not exist, or has a name that is not UTF-8"
        : "does not exist"
      : code === "PATH_UNSAFE"
        ? "is a symbolic link"
        : `cannot be read (${systemCode})`;
  throw new ThroughlineError(code, `${quote(path)} ${why}.`, {
    details: { path, systemCode },
    cause,
    ...(code === "PATH_UNSAFE" ? { remedy: "Name the file itself: no link is followed in what is imported." } : {}),
  });
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "unknown";
}
