import { createReadStream, readdirSync, readFileSync, statSync } from "node:fs";
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

export function readText(path: string): string {
  return fileAccess(path, () => readFileSync(path, "utf8"));
}

/** The bytes of a file, piece by piece. */
export async function* readChunks(path: string): AsyncGenerator<Uint8Array, void, void> {
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) yield chunk as Buffer;
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

export function fileError(error: unknown, path: string): unknown {
  if (ThroughlineError.isInstance(error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  const quoted = JSON.stringify(path);
  const options = { cause: error, details: { path, code } };
  if (code === "ENOENT" || code === "ENOTDIR")
    return new ThroughlineError("FILE_NOT_FOUND", `${quoted} does not exist.`, options);
  if (code === "EEXIST") return new ThroughlineError("EXPORT_EXISTS", `${quoted} exists already.`, options);
  if (code === "ENOSPC") return new ThroughlineError("STORE_FULL", `There is no room left for ${quoted}.`, options);
  const why = error instanceof Error ? error.message : String(error);
  return new ThroughlineError("FILE_UNREADABLE", `${quoted} cannot be used: ${why}`, options);
}
