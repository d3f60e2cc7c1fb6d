import { resolve } from "node:path";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";

/**
 * A path as it was given, taken from the working directory. An empty one is mostly a variable that was never set, and
 * would mean the working directory with everything in it.
 * @throws {ThroughlineError} USAGE
 */
export function namedPath({ workingDirectory }: Pick<Host, "workingDirectory">, path: string): string {
  if (path === "") throw usageError("A path that was given is empty; the working directory is written as a dot.");
  return resolve(workingDirectory, path);
}
