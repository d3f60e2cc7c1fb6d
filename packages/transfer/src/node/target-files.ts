import { constants } from "node:fs";
import { link, lstat, mkdir, open, readdir, rename, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { ThroughlineError, type ErrorCode, type RandomSource } from "@throughline/core";
import { quote, systemClock } from "@throughline/core/internal";

/** @throws {ThroughlineError} EXPORT_EXISTS when the name is in use, even by a dangling link */
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
 * Writes a new file under a temporary name first. Once complete and flushed, the file gets its final name in one step,
 * which fails if the name is in use.
 * The mode is 0600. Missing directories are created with 0700, and removed again if the file cannot be written.
 * @throws {ThroughlineError} EXPORT_EXISTS, STORE_READ_ONLY, STORE_FULL, FILE_UNREADABLE, and errors of the chunks
 */
export async function writeNewFile(
  path: string,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
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

/**
 * Appends a line to a file of another program in one write, as the program does it. A new file gets the mode 0600. A
 * link or anything else that is no regular file stays as it is.
 * @returns false when the line cannot be written
 */
export async function appendLine(path: string, line: string): Promise<boolean> {
  const flags =
    constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags, 0o600).catch(() => null);
  if (handle === null) return false;
  try {
    if (!(await handle.stat()).isFile()) return false;
    await handle.writeFile(line);
    await handle.sync();
    return true;
  } catch {
    // The disk is full or fails. The caller reports what is missing then.
    return false;
  } finally {
    await handle.close();
  }
}

/** Returns null for a file that does not hold exactly these bytes. */
export async function sizeIfSame(path: string, chunks: AsyncIterable<Uint8Array>): Promise<number | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags).catch(() => null);
  // A link, a pipe or an unreadable file is not the file that the export would write.
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
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  random: RandomSource,
): Promise<{ readonly sizeBytes: number }> {
  await removeLeftovers(dirname(path));
  // The name does not contain the file's name, which may already have the maximum length.
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

/** Holds folders that this process already cleaned, because an export writes many files into one folder. */
const tidied = new Set<string>();

/** A process of another container has an unrelated pid. Its temporary file stays newer than this while it grows. */
const untouchedMs = 60_000;

/** Removes temporary files of processes that were killed while writing. */
async function removeLeftovers(folder: string): Promise<void> {
  if (tidied.has(folder)) return;
  tidied.add(folder);
  // A failure is ignored: a process with permission removes the files later.
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
    // The process belongs to another user, so it is alive.
    return codeOf(error) === "EPERM";
  }
}

/**
 * Creates a folder and its missing parents with mode 0700, and returns the created folders, innermost first.
 * Each level is created separately, because Node's recursive mkdir reports ENOENT on a read-only disk. It also never
 * returns if the system reports ENOENT for a folder that cannot be created, as in /proc.
 * @throws the system's error for the first folder that cannot be created
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

/** Removes folders that were created for a failed export. A folder with files stays, and so do its parents. */
async function removeEmptyFolders(innermostFirst: readonly string[]): Promise<void> {
  for (const folder of innermostFirst) {
    try {
      await rmdir(folder);
    } catch {
      // The folder is in use or not accessible. The caller reports the failure that led here, which matters more.
      return;
    }
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // A path that cannot be inspected cannot be used as a folder.
    return false;
  }
}

/** File systems without hard links, such as those of memory sticks, report these codes. */
const withoutLinks: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

/** Links instead of renaming, because a rename would replace a file that appeared meanwhile. */
async function nameFile(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw exists(path);
    if (!withoutLinks.has(codeOf(error))) throw unwritable(path, error);
    await takeName(temporary, path);
  }
}

/**
 * Reserves the name first, so an existing file still causes a refusal. Only a crash before the rename leaves it empty.
 */
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

/** A null remedy keeps the default remedy of the error code. */
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
  // Every missing directory was created one by one, so ENOENT means that the system refuses to create one.
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
