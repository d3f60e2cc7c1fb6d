import { resolve } from "node:path";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";

/**
 * Resolves a path from the working directory. An empty path is usually an unset variable, and would mean the whole
 * working directory.
 * @throws {ThroughlineError} USAGE
 */
export function namedPath({ workingDirectory }: Pick<Host, "workingDirectory">, path: string): string {
  if (path === "") throw usageError("A path that was given is empty; the working directory is written as a dot.");
  return resolve(workingDirectory, path);
}
