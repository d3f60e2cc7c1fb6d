import { causeText } from "@throughline/core/internal";
import { constants, type Dirent, readdirSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join } from "node:path";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { classifySessionFile } from "@throughline/openclaw-format/internal";

export interface TranscriptFile {
  readonly path: string;
  readonly kind: "transcript" | "index";
}

/** A later search skips files with this ending, so that a repaired copy is not checked as a session. */
export const repairedSuffix = ".repaired.jsonl";

/**
 * Finds the transcripts and indexes below a directory, in the order of their paths. For a file, the result is the file
 * itself. Links are not followed, because they could form a loop.
 * @param path an absolute path
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export function findTranscriptFiles(path: string): readonly TranscriptFile[] {
  return fileAccess(path, () => {
    if (!statSync(path).isDirectory())
      return [{ path, kind: basename(path) === "sessions.json" ? "index" : "transcript" }];
    return filesBelow(path)
      .filter(({ name }) => !name.endsWith(repairedSuffix))
      .flatMap((entry): readonly TranscriptFile[] => {
        const { kind } = classifySessionFile(entry.name);
        const file = join(entry.parentPath, entry.name);
        if (kind === "index") return [{ path: file, kind: "index" }];
        const isTranscript = kind === "transcript" || kind === "reset-archive" || kind === "deleted-archive";
        return isTranscript ? [{ path: file, kind: "transcript" }] : [];
      })
      .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  });
}

/** Lists the regular files below a directory. A recursive `readdirSync` follows links to folders, so it cannot be used. */
function filesBelow(path: string): readonly Dirent[] {
  const files: Dirent[] = [];
  const folders = [path];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isFile()) files.push(entry);
      else if (entry.isDirectory()) folders.push(join(folder, entry.name));
  return files;
}

/** Returns the names in the directory of a file. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export function namesBeside(path: string): ReadonlySet<string> {
  return fileAccess(path, () => new Set(readdirSync(join(path, ".."))));
}

/** Reads a whole regular file. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export async function readText(path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(readChunks(path))).toString("utf8");
}

const chunkBytes = 256 * 1024;

/**
 * Reads a regular file in pieces of at most 256 KiB. Bytes that are appended after the open are not read, so the loop
 * ends. Named pipes and devices are refused: they may never end, and no signal can end the wait.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export async function* readChunks(path: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const facts = await file.stat();
      if (!facts.isFile())
        throw new ThroughlineError("FILE_UNREADABLE", `${JSON.stringify(path)} is not a regular file.`, {
          details: { path },
        });
      for (let at = 0; at < facts.size;) {
        const length = Math.min(chunkBytes, facts.size - at);
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
        if (bytesRead === 0) break;
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(error, path);
  }
}

/**
 * Returns the names of the folders in a folder. A folder that does not exist has none.
 * @throws {ThroughlineError} FILE_UNREADABLE
 */
export function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch (error) {
    const typed = fileError(error, path);
    if (hasErrorCode(typed, "FILE_NOT_FOUND")) return [];
    throw typed;
  }
}

/** Callers see error codes of Throughline, never those of the file system. */
function fileAccess<Result>(path: string, access: () => Result): Result {
  try {
    return access();
  } catch (error) {
    throw fileError(error, path);
  }
}

function fileError(error: unknown, path: string): unknown {
  if (ThroughlineError.isInstance(error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  const quoted = JSON.stringify(path);
  const options = { cause: error, details: { path, code } };
  if (code === "ENOENT" || code === "ENOTDIR")
    return new ThroughlineError("FILE_NOT_FOUND", `${quoted} does not exist.`, options);
  const why = causeText(error);
  return new ThroughlineError("FILE_UNREADABLE", `${quoted} cannot be used: ${why}`, options);
}
