import { join, resolve } from "node:path";
import type { ConfigFile } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import type { Host } from "./host.ts";
import { assertReadable, isThere, readBoundedFile } from "./open-store.ts";

/** Larger than any configuration somebody wrote. */
const mostBytes = 4_194_304;
const remedy = "Name another file with --config.";

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
    return { path, text: readBoundedFile(path, { what: "configuration", mostBytes, remedy }) };
  } catch (cause) {
    if (ThroughlineError.isInstance(cause)) throw cause;
    const message = `The configuration file ${JSON.stringify(path)} cannot be read.`;
    throw new ThroughlineError("FILE_UNREADABLE", message, { cause, details: { path } });
  }
}
