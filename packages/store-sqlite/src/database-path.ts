import { resolve } from "node:path";
import { refused } from "@throughline/core/store";

/**
 * The path SQLite is given.
 * @throws {ThroughlineError} PATH_UNSAFE for what the driver would read as another name
 */
export function databasePath(path: string): string {
  const full = resolve(path);
  if (full !== full.trim() || full.includes("\0"))
    throw refused("PATH_UNSAFE", `The path ${JSON.stringify(path)} ends with white space.`, { path });
  return full;
}
