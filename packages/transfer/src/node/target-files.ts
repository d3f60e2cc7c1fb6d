import { constants } from "node:fs";
import { link, lstat, mkdir, open, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
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
 * @throws {ThroughlineError} EXPORT_EXISTS, FILE_UNREADABLE, STORE_FULL
 */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  random: RandomSource,
): Promise<{ readonly sizeBytes: number }> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 }).catch((error: unknown) => throwUnwritable(path, error));
  // Not made of the file's own name, which may be as long as a name can be.
  const temporary = join(dirname(path), `.throughline-${random.uuid()}.tmp`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, 0o600).catch((error: unknown) => throwUnwritable(path, error));
  let sizeBytes = 0;
  try {
    try {
      for await (const chunk of chunks) {
        await handle.writeFile(chunk).catch((error: unknown) => throwUnwritable(path, error));
        sizeBytes += chunk.length;
      }
      await handle.sync().catch((error: unknown) => throwUnwritable(path, error));
    } finally {
      await handle.close().catch((error: unknown) => throwUnwritable(path, error));
    }
    await nameFile(temporary, path);
  } finally {
    await unlink(temporary).catch((error: unknown) => codeOf(error) === "ENOENT" || throwUnwritable(path, error));
  }
  return { sizeBytes };
}

/** Codes of file systems that know no second name of a file, as those of memory sticks. */
const withoutLinks: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Not a rename at once: that would replace a file that appeared meanwhile. */
async function nameFile(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw exists(path);
    if (!withoutLinks.has(codeOf(error))) throw unwritable(path, error);
    await takeName(temporary, path);
  }
}

/** Taking the name first refuses what exists as well; only a crash in between leaves it empty. */
async function takeName(temporary: string, path: string): Promise<void> {
  try {
    await (await open(path, "wx", 0o600)).close();
    await rename(temporary, path);
  } catch (error) {
    throw codeOf(error) === "EEXIST" ? exists(path) : unwritable(path, error);
  }
}

function exists(path: string): ThroughlineError {
  return new ThroughlineError("EXPORT_EXISTS", `${quote(path)} exists already.`, {
    outcome: "not-applied",
    details: { path },
  });
}

function unwritable(path: string, cause: unknown): ThroughlineError {
  const message = `${quote(path)} cannot be written (${codeOf(cause)}).`;
  const isFull = ["ENOSPC", "EDQUOT"].includes(codeOf(cause));
  return new ThroughlineError(isFull ? "STORE_FULL" : "FILE_UNREADABLE", message, {
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
