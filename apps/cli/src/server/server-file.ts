import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { shellWord, systemRandom } from "@throughline/core/internal";

/** A running server stores this file in its home for programs of the same user. */
export interface ServerFile {
  readonly url: string;
  /** Grants every right and is revoked when the server ends. */
  readonly token: string;
  readonly pid: number;
  /** Is the address of its store without secrets; null in the file of an earlier version. */
  readonly store: string | null;
}

const mostBytes = 65_536;

export function serverFilePath(home: string): string {
  return join(home, "server.json");
}

/**
 * Returns null if the file is missing or not written by a server. The file holds a secret, so a link, and a file that
 * other users may read or own, are refused.
 * @throws {ThroughlineError} PATH_UNSAFE
 */
export function readServerFile(path: string): ServerFile | null {
  const text = readSecretFile(path);
  if (text === null) return null;
  try {
    const { url, token, pid, store } = JSON.parse(text) as Record<string, unknown>;
    if (typeof url === "string" && URL.canParse(url) && typeof token === "string" && Number.isSafeInteger(pid))
      return { url, token, pid: Number(pid), store: typeof store === "string" ? store : null };
  } catch {
    // No server wrote this content, so it is ignored.
  }
  return null;
}

/**
 * Returns the text of a file that only its owner may read; null if the file is missing.
 * @throws {ThroughlineError} PATH_UNSAFE for a link, for anything but a file, and for a file that others may read or
 *   own
 */
export function readSecretFile(path: string): string | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw unsafe(path, "is a symbolic link", "Put the file itself there.");
    throw error;
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw unsafe(path, "is not a regular file", "Put a regular file there.");
    const user = process.getuid?.();
    if (user !== undefined && stats.uid !== user && stats.uid !== 0)
      throw unsafe(path, `belongs to user ${stats.uid}`, "Use a file of the user that runs this command.");
    if (user !== undefined && (stats.mode & 0o077) !== 0)
      throw unsafe(path, "can be read by other users", `Close it: chmod 600 ${shellWord(path)}.`);
    if (stats.size > mostBytes)
      throw unsafe(path, `has ${stats.size} bytes`, `A file of a token has at most ${mostBytes}.`);
    const bytes = Buffer.alloc(stats.size);
    return bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes the file unless another server's file exists. `stale` is the file of a killed server, which may be replaced.
 * Returns false if another server was faster.
 */
export function claimServerFile(path: string, file: ServerFile, stale: ServerFile | null): boolean {
  const temporary = `${path}.${systemRandom.uuid()}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(file)}\n`, { mode: 0o600, flag: "wx" });
  try {
    if (linked(temporary, path)) return true;
    const found = readServerFile(path);
    if (found !== null && !isSame(found, stale)) return false;
    return removeServerFile(path, found) && linked(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Removes the file if it still has this content; returns false if its content is another server's. Null removes a file
 * that no server wrote.
 */
export function removeServerFile(path: string, file: ServerFile | null): boolean {
  const aside = `${path}.${systemRandom.uuid()}.tmp`;
  try {
    // The unique name prevents another process from removing the same file.
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
  try {
    const found = readServerFile(aside);
    if (found === null || isSame(found, file)) return true;
    linked(aside, path);
    return false;
  } finally {
    rmSync(aside, { force: true });
  }
}

function isSame(one: ServerFile, other: ServerFile | null): boolean {
  return one.url === other?.url && one.token === other.token && one.pid === other.pid;
}

/** Returns false if the target name is in use. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function unsafe(path: string, why: string, remedy: string): ThroughlineError {
  const message = `${JSON.stringify(path)} holds a secret, and ${why}.`;
  return new ThroughlineError("PATH_UNSAFE", message, { outcome: "not-applied", details: { path }, remedy });
}
