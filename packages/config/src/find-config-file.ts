import { join, resolve } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { assertReadable, isThere, readBoundedFile } from "./node/file-access.ts";
import type { ConfigFile } from "./read-config-file.ts";

/** Larger than any configuration that a person writes. */
const mostBytes = 4_194_304;
const remedy = "Name another file with --config.";

/** Where a configuration file is looked for. */
interface ConfigFilePlace {
  /** Relative paths start here. */
  readonly workingDirectory: string;
  /** The home, which may hold `config.json`. */
  readonly home: string;
  /** The file that the user named, in place of the one in the home. */
  readonly named: string | undefined;
}

/** The path of the configuration file: the one that was named, else `config.json` in the home. It may not exist. */
export function configFilePath({ workingDirectory, home, named }: ConfigFilePlace): string {
  return named === undefined ? join(resolve(workingDirectory, home), "config.json") : resolve(workingDirectory, named);
}

/**
 * Reads the configuration file; null when none was named and the home has none.
 * @throws {ThroughlineError} FILE_NOT_FOUND for a named file, FILE_UNREADABLE
 */
export function loadConfigFile(place: ConfigFilePlace): ConfigFile | null {
  const path = configFilePath(place);
  if (!isThere(path)) {
    if (place.named === undefined) return null;
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
