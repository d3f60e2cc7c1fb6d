import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ConfigFile } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import type { Host } from "./host.ts";
import { assertReadable, isThere } from "./open-store.ts";

/** Larger than any configuration somebody wrote. */
const mostBytes = 4_194_304;

const smaller = "Name another file with --config.";

/** The file that is read, which need not be there: the one that was named, else that in the home. */
export function configPath({ workingDirectory }: Host, home: string, named: string | undefined): string {
  return named === undefined ? join(resolve(workingDirectory, home), "config.json") : resolve(workingDirectory, named);
}

/**
 * The file that was named must be there; the one in the home may be missing.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export function readConfigFile(host: Host, home: string, named: string | undefined): ConfigFile | null {
  const path = configPath(host, home, named);
  if (!isThere(path)) {
    if (named === undefined) return null;
    throw new ThroughlineError("FILE_NOT_FOUND", `The configuration file ${JSON.stringify(path)} does not exist.`, {
      details: { path },
    });
  }
  assertReadable(path);
  try {
    return { path, text: readBounded(path) };
  } catch (cause) {
    if (ThroughlineError.isInstance(cause)) throw cause;
    throw unreadable(path, "cannot be read", { cause });
  }
}

/** A pipe may never end, and a device does not: neither is waited for, and no file fills the memory. */
function readBounded(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw unreadable(path, "is not a regular file");
    if (stats.size > mostBytes)
      throw unreadable(path, `has ${stats.size} bytes; a configuration has at most ${mostBytes}`, { remedy: smaller });
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, length);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(descriptor);
  }
}

function unreadable(
  path: string,
  why: string,
  more: { readonly cause?: unknown; readonly remedy?: string } = {},
): ThroughlineError {
  const message = `The configuration file ${JSON.stringify(path)} ${why}.`;
  return new ThroughlineError("FILE_UNREADABLE", message, { ...more, details: { path } });
}
