import { constants, readdirSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { classifySessionFile } from "@throughline/openclaw-format";

/** A file that holds a conversation or an index of conversations. */
export interface TranscriptFile {
  readonly path: string;
  readonly kind: "transcript" | "index";
}

/** What `doctor --repair` puts behind a file's name. */
export const repairedSuffix = ".repaired.jsonl";

/**
 * The file itself, or every transcript and index below a directory, by name. Links are not followed: they could lead in
 * a circle.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export function findTranscriptFiles(path: string, workingDirectory: string): readonly TranscriptFile[] {
  const full = resolve(workingDirectory, path);
  return fileAccess(full, () => {
    if (!statSync(full).isDirectory())
      return [{ path: full, kind: basename(full) === "sessions.json" ? "index" : "transcript" }];
    return readdirSync(full, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith(repairedSuffix))
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

/** The names in the directory of a file. */
export function namesBeside(path: string): ReadonlySet<string> {
  return fileAccess(path, () => new Set(readdirSync(join(path, ".."))));
}

/** A whole regular file. @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE */
export async function readText(path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(readChunks(path))).toString("utf8");
}

const chunkBytes = 256 * 1024;

/**
 * The bytes of a regular file, piece by piece; what is written after it was opened is not read. A named pipe would
 * otherwise be waited for until a writer comes, beyond the reach of any signal, and a device has no end.
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

/** Runs a file operation and says in our own terms what failed. */
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
  const why = error instanceof Error ? error.message : String(error);
  return new ThroughlineError("FILE_UNREADABLE", `${quoted} cannot be used: ${why}`, options);
}
