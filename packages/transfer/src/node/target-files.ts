import { constants } from "node:fs";
import { link, lstat, mkdir, open, readdir, rename, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { ThroughlineError, type ErrorCode, type RandomSource } from "@throughline/core";
import { quote, systemClock } from "@throughline/core/internal";

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
 * Writes a new file under a temporary name first. Then, complete and flushed, it gets its own name in one step, which
 * fails if the name is in use. Mode 0600; missing directories are created with 0700, and removed again if the file
 * cannot be written.
 * @throws {ThroughlineError} EXPORT_EXISTS, STORE_READ_ONLY, STORE_FULL, FILE_UNREADABLE, and what the chunks throw
 */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  random: RandomSource,
): Promise<{ readonly sizeBytes: number }> {
  const folders = await makeFolder(dirname(path)).catch((error: unknown) => throwUnwritable(path, error));
  try {
    return await writeInFolder(path, chunks, random);
  } catch (error) {
    await removeEmptyFolders(folders);
    throw error;
  }
}

/** The size of a regular file that holds exactly these bytes; null for any other. */
export async function sizeIfSame(path: string, chunks: AsyncIterable<Uint8Array>): Promise<number | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => null);
  // What cannot be opened, or is a link or a pipe, is not the file that would be written.
  if (handle === null) return null;
  try {
    const facts = await handle.stat();
    if (!facts.isFile()) return null;
    let at = 0;
    for await (const chunk of chunks) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(chunk.length), 0, chunk.length, at);
      if (bytesRead !== chunk.length || !buffer.equals(chunk)) return null;
      at += chunk.length;
    }
    return at === facts.size ? at : null;
  } finally {
    await handle.close();
  }
}

async function writeInFolder(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  random: RandomSource,
): Promise<{ readonly sizeBytes: number }> {
  await removeLeftovers(dirname(path));
  // Not made of the file's own name, which may be as long as a name can be.
  const temporary = join(dirname(path), `.throughline-${process.pid}-${random.uuid()}.tmp`);
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

/** Folders that this process has looked at: an export of everything writes many files into one. */
const tidied = new Set<string>();

/** A process of another container has a number that means nothing here, and its file grows meanwhile. */
const untouchedMs = 60_000;

/** Removes what processes left in a folder that were killed while they wrote a file. */
async function removeLeftovers(folder: string): Promise<void> {
  if (tidied.has(folder)) return;
  tidied.add(folder);
  // Who may not look into the folder, or remove a file, leaves it to the next.
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const [, pid] = /^\.throughline-(\d{1,10})-[0-9a-f-]{36}\.tmp$/.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(folder, name);
    const facts = await lstat(path).catch(() => null);
    const isUntouched = facts !== null && Math.abs(systemClock.nowMs() - facts.mtimeMs) > untouchedMs;
    if (isUntouched && facts.isFile()) await unlink(path).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Of another user: it lives.
    return codeOf(error) === "EPERM";
  }
}

/**
 * Makes a folder and those it is in, with mode 0700, and gives the ones that were not there, the innermost first. Step
 * by step, because Node's recursive mkdir reports ENOENT on a read-only disk. It never ends where the system reports
 * ENOENT for a folder that cannot be created, as in /proc.
 * @throws what the system says of the first folder that cannot be made
 */
async function makeFolder(path: string): Promise<readonly string[]> {
  try {
    await mkdir(path, { mode: 0o700 });
    return [path];
  } catch (error) {
    if (await isFolder(path)) return [];
    const parent = dirname(path);
    if (codeOf(error) !== "ENOENT" || parent === path || (await isFolder(parent))) throw error;
    const made = await makeFolder(parent);
    return [...(await makeFolder(path)), ...made];
  }
}

/** Takes back folders that were made for nothing; one that holds something by now stays, as do those it is in. */
async function removeEmptyFolders(innermostFirst: readonly string[]): Promise<void> {
  for (const folder of innermostFirst) {
    try {
      await rmdir(folder);
    } catch {
      // In use by now, or beyond reach: the caller hears of the failure that led here, which is the one that matters.
      return;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // What cannot be looked at cannot be used as one.
    return false;
  }
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

/** Why a file cannot be written, and what helps; null for what the code's own remedy says. */
interface Refusal {
  readonly code: ErrorCode;
  readonly remedy: string | null;
}

const readOnly: Refusal = {
  code: "STORE_READ_ONLY",
  remedy: "Name another place, or let this user write there: mount it writable, or correct its permissions.",
};
const full: Refusal = { code: "STORE_FULL", remedy: null };
const blocked: Refusal = {
  code: "FILE_UNREADABLE",
  remedy: "A file is in its way where a directory is due: name another place.",
};

const refusals: ReadonlyMap<string, Refusal> = new Map([
  ["EROFS", readOnly],
  ["EACCES", readOnly],
  ["EPERM", readOnly],
  // Every directory that was missing has been asked for: the system makes none there.
  ["ENOENT", readOnly],
  ["ENOSPC", full],
  ["EDQUOT", full],
  ["ENOTDIR", blocked],
  ["EEXIST", blocked],
  ["ENAMETOOLONG", { code: "FILE_UNREADABLE", remedy: "Name it shorter, or a place with a shorter path." }],
]);

function unwritable(path: string, cause: unknown): ThroughlineError {
  const { code, remedy } = refusals.get(codeOf(cause)) ?? { code: "FILE_UNREADABLE", remedy: null };
  return new ThroughlineError(code, `${quote(path)} cannot be written (${codeOf(cause)}).`, {
    outcome: "not-applied",
    details: { path, systemCode: codeOf(cause) },
    ...(remedy === null ? {} : { remedy }),
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
