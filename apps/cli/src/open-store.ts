import { accessSync, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { ThroughlineError, shellWord } from "@throughline/core";
import type { SessionEventListener, SessionStore } from "@throughline/core";
import { parseStoreUrl } from "./store-url.ts";

export interface OpenStoreOptions {
  readonly workingDirectory: string;
  /** Whether a store that is not there is made. */
  readonly create: boolean;
  /** False: a damaged file stays where it is, though a backup lies beside it. @default true */
  readonly recover?: boolean;
  readonly onEvent?: SessionEventListener;
}

/**
 * Opens the store of a URL; loads only the store that is needed.
 * @throws {ThroughlineError} STORE_URL_INVALID
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<SessionStore> {
  const address = parseStoreUrl(url, options.workingDirectory);
  const events = options.onEvent === undefined ? {} : { onEvent: options.onEvent };
  if (address.scheme === "memory") {
    const { createMemoryStore } = await import("@throughline/store-memory");
    return createMemoryStore(events);
  }
  if (address.scheme === "sqlite") {
    assertReadable(address.path);
    if (isFolder(address.path)) {
      const { path } = address;
      const file = `sqlite:${join(path, "sessions.db")}`;
      throw misnamed(
        path,
        "a folder; a SQLite store is one file",
        `--store ${shellWord(file)}, or --store ${shellWord(`jsonl:${path}`)}`,
      );
    }
    const { createSqliteStore } = await import("@throughline/store-sqlite");
    return createSqliteStore({
      path: address.path,
      create: options.create,
      recover: options.recover ?? true,
      ...events,
    });
  }
  if (address.scheme === "postgres") {
    const { createPostgresStore } = await import("@throughline/store-postgres");
    // A person waits: a server that is not there is said sooner than a program would have it.
    return createPostgresStore({ url: address.url, migrate: options.create, connectTimeoutMs: 3000, ...events });
  }
  const { root } = address;
  assertReadable(root);
  if (isThere(root) && !isFolder(root))
    throw misnamed(
      root,
      "a file; a JSON Lines store is a folder",
      `--store ${shellWord(`sqlite:${root}`)}, or another folder`,
    );
  const { createJsonlStore } = await import("@throughline/store-jsonl");
  return createJsonlStore({ root, create: options.create, ...events });
}

function misnamed(path: string, what: string, remedy: string): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `${JSON.stringify(path)} is ${what}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Name it so: ${remedy}.`,
  });
}

const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);
const denied: ReadonlySet<unknown> = new Set(["EACCES", "EPERM"]);

/**
 * Whether something lies at an absolute path. What this user may not look at counts as there: taking it for absent would
 * begin an empty store beside a full one.
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

export function isFolder(path: string): boolean {
  return isThere(path) && statSync(path).isDirectory();
}

/** Does nothing when nothing is there. @throws {ThroughlineError} FILE_UNREADABLE when this user may not read it */
export function assertReadable(path: string): void {
  if (!isThere(path)) return;
  try {
    accessSync(path, statSync(path).isDirectory() ? constants.R_OK | constants.X_OK : constants.R_OK);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): unknown {
  // A name that is too long, or a link that leads to itself, says so by itself.
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

/** The first folder on the way that this user may not pass, else the path itself, with what the system says of it. */
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

/** Larger than any file that this program or a person writes into the home. */
export const mostFileBytes = 33_554_432;

export interface BoundedFileOptions {
  /** What a message calls it, before the word file. */
  readonly what: string;
  readonly mostBytes: number;
  readonly remedy?: string;
}

/**
 * The text of a file that is read whole. A pipe may never end, and a device does not: neither is waited for, and no file
 * fills the memory.
 * @throws {ThroughlineError} FILE_UNREADABLE for a larger file and for anything but a regular file; else the system's error
 */
export function readBoundedFile(path: string, { what, mostBytes, remedy }: BoundedFileOptions): string {
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
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}
