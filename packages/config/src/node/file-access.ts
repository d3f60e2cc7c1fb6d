import { accessSync, chmodSync, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";

const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);
const denied: ReadonlySet<unknown> = new Set(["EACCES", "EPERM"]);

/**
 * Returns whether an absolute path exists. A path that this user may not read throws. If it counted as absent, an empty
 * store would be created beside a full one.
 * @throws {ThroughlineError} FILE_UNREADABLE
 */
export function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (absent.has((error as { code?: unknown }).code)) return false;
    throw unreadable(path, error);
  }
}

/** States who may use a file beside its owner. */
interface FileRights {
  /** Users outside of the group can read the file, or anyone but its owner can write it. Windows has no such rights. */
  readonly isOpenToOthers: boolean;
  /**
   * The mount states the rights of the file, and no user can change them. Docker mounts a secret so with 0444, and Kubernetes
   * mounts one with 0644.
   */
  readonly isMountedReadOnly: boolean;
  readonly isOwn: boolean;
}

/** @throws Error of the system */
export function rightsOf(path: string): FileRights {
  const { mode, uid } = statSync(path);
  const isOpenToOthers = process.platform !== "win32" && (mode & 0o027) !== 0;
  const isWritable = (mode & 0o022) !== 0;
  return {
    isOpenToOthers,
    isMountedReadOnly: isOpenToOthers && !isWritable && refusesAllChanges(path, mode),
    isOwn: uid === process.geteuid?.(),
  };
}

/** Asks for the rights that the file has. The kernel looks at the mount before it looks at the owner, unlike in `access`. */
function refusesAllChanges(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode & 0o7777);
    return false;
  } catch (error) {
    return (error as { readonly code?: unknown }).code === "EROFS";
  }
}

/** @throws {ThroughlineError} FILE_UNREADABLE */
export function isFolder(path: string): boolean {
  return isThere(path) && statSync(path).isDirectory();
}

/**
 * Throws when a file or folder exists and this user may not read it. An absent path passes.
 * @throws {ThroughlineError} FILE_UNREADABLE
 */
export function assertReadable(path: string): void {
  if (!isThere(path)) return;
  try {
    accessSync(path, statSync(path).isDirectory() ? constants.R_OK | constants.X_OK : constants.R_OK);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): unknown {
  // The system error already describes a path that is too long, or a link that leads to itself.
  if (!denied.has((cause as { code?: unknown }).code)) return cause;
  const [barrier, facts] = barrierOf(path);
  const user = process.getuid?.();
  const isOwn = facts !== undefined && facts.uid === user;
  const owner =
    facts === undefined || isOwn ? "" : ` It belongs to user ${facts.uid}, and this command runs as user ${user}.`;
  const what = barrier === path ? "" : ` Its folder ${JSON.stringify(barrier)} is closed to this user.`;
  const remedy = isOwn
    ? `Open it for yourself: \`chmod u+rw${facts.isDirectory() ? "x" : ""} ${shellWord(barrier)}\``
    : "Run the command as that user, or change the permissions as that user";
  return new ThroughlineError("FILE_UNREADABLE", `${JSON.stringify(path)} cannot be read.${what}${owner}`, {
    cause,
    details: { path, barrier },
    remedy: `${remedy}. Or use another place: --home DIR or --store URL.`,
  });
}

/**
 * Returns the first folder above the path that this user may not enter, with its owner. Without such a folder the path
 * itself is the barrier.
 */
function barrierOf(path: string): readonly [string, ReturnType<typeof factsOf>] {
  const parents: string[] = [];
  for (let at = dirname(path); !parents.includes(at); at = dirname(at)) parents.unshift(at);
  for (const parent of parents) {
    try {
      accessSync(parent, constants.X_OK);
    } catch {
      return [parent, factsOf(parent)];
    }
  }
  return [path, factsOf(path)];
}

function factsOf(path: string): { readonly uid: number; isDirectory(): boolean } | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** The limit is 32 MiB, larger than any file that Throughline or a person writes into the home. */
export const mostFileBytes = 33_554_432;

export interface BoundedFileOptions {
  /** An error message puts this word before "file". */
  readonly what: string;
  readonly mostBytes: number;
  readonly remedy?: string;
}

/**
 * Reads a whole file as text, within a limit.
 * @throws {ThroughlineError} as `readBoundedBytes`
 */
export function readBoundedFile(path: string, options: BoundedFileOptions): string {
  return readBoundedBytes(path, options).toString("utf8");
}

/**
 * Reads a whole file, within a limit. A pipe or a device is refused at once, because its content may never end.
 * @throws {ThroughlineError} FILE_UNREADABLE for a larger file and for anything but a regular file; else the system's
 * error
 */
export function readBoundedBytes(path: string, { what, mostBytes, remedy }: BoundedFileOptions): Buffer {
  const refused = (why: string, more: { readonly remedy?: string } = {}): ThroughlineError => {
    const message = `The ${what} file ${JSON.stringify(path)} ${why}.`;
    return new ThroughlineError("FILE_UNREADABLE", message, { ...more, details: { path } });
  };
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw refused("is not a regular file");
    if (stats.size > mostBytes)
      throw refused(
        `has ${stats.size} bytes; a ${what} has at most ${mostBytes}`,
        remedy === undefined ? {} : { remedy },
      );
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, length);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
