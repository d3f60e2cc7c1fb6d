import { join, resolve } from "node:path";
import { ThroughlineError } from "@throughline/core";
import { assertReadable, isThere, readBoundedFile } from "./node/file-access.ts";
import type { ConfigFile } from "./read-config-file.ts";

/** No configuration that a person writes is larger than this. */
const mostBytes = 4_194_304;
const remedy = "Name another file with --config.";

/** States where the configuration file is looked for. */
interface ConfigFilePlace {
  /** Resolves relative paths. */
  readonly workingDirectory: string;
  /** Holds `config.json` when no file is named. */
  readonly home: string;
  /** The user may name a file that replaces `config.json` in the home. */
  readonly named: string | undefined;
}

/** Returns the path of the named file, else of `config.json` in the home. The file may not exist. */
export function configFilePath({ workingDirectory, home, named }: ConfigFilePlace): string {
  return named === undefined ? join(resolve(workingDirectory, home), "config.json") : resolve(workingDirectory, named);
}

/**
 * Reads the configuration file. Returns null when no file was named and the home has no `config.json`.
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
