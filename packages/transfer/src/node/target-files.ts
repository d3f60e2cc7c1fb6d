import { constants } from "node:fs";
import { link, lstat, mkdir, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { ThroughlineError, type RandomSource } from "@throughline/core";
import { quote } from "@throughline/core/store";

/** @throws {ThroughlineError} EXPORT_EXISTS when something has the name, be it a dangling link */
export async function assertNoFile(path: string): Promise<void> {
  const isThere = await lstat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === "ENOENT") return false;
      throw unwritable(path, error);
    },
  );
  if (isThere) throw exists(path);
}

/**
 * Writes a new file: under a temporary name first, then, complete and on the disk, under its own, which is taken in one
 * step that fails when anybody else took it. Mode 0600; directories that are missing are made with 0700.
 * @throws {ThroughlineError} EXPORT_EXISTS, FILE_UNREADABLE
 */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  random: RandomSource,
): Promise<{ readonly sizeBytes: number }> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch((error: unknown) => throwUnwritable(path, error));
  const temporary = `${path}.${random.uuid()}.tmp`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, 0o600).catch((error: unknown) => throwUnwritable(path, error));
  let sizeBytes = 0;
  try {
    try {
      for await (const chunk of chunks) {
        await handle.writeFile(chunk).catch((error: unknown) => throwUnwritable(path, error));
        sizeBytes += chunk.length;
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Not a rename: that would replace a file that appeared meanwhile.
    await link(temporary, path).catch((error: unknown) => {
      throw codeOf(error) === "EEXIST" ? exists(path) : unwritable(path, error);
    });
  } finally {
    await unlink(temporary);
  }
  return { sizeBytes };
}

function exists(path: string): ThroughlineError {
  return new ThroughlineError("EXPORT_EXISTS", `${quote(path)} exists already.`, {
    outcome: "not-applied",
    details: { path },
  });
}

function unwritable(path: string, cause: unknown): ThroughlineError {
  const message = `${quote(path)} cannot be written (${codeOf(cause)}).`;
  return new ThroughlineError("FILE_UNREADABLE", message, {
    outcome: "not-applied",
    details: { path, systemCode: codeOf(cause) },
    cause,
  });
}

function throwUnwritable(path: string, cause: unknown): never {
  throw unwritable(path, cause);
}

function codeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "unknown";
}
