import { resolve } from "node:path";
import { realFolder } from "@throughline/config/internal";
import type { SessionRow } from "@throughline/core/internal";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";
import { namedFormat } from "./program-names.ts";

/** Holds the options that limit a command to some sessions. */
export interface SessionFilter {
  readonly program?: string;
  readonly folder?: string;
  readonly here?: boolean;
}

/** Folders are compared after links are resolved, so that a link and its target count as one folder. */
export function rowFilter(
  { workingDirectory }: Pick<Host, "workingDirectory">,
  { program, folder, here }: SessionFilter,
): (row: SessionRow) => boolean {
  if (here === true && folder !== undefined) throw usageError("--here is --folder .: give one of them.");
  const format = program === undefined ? undefined : namedFormat(program);
  const path = here === true ? "." : folder;
  const wanted = path === undefined ? null : realFolder(resolve(workingDirectory, path));
  return (row) =>
    (format === undefined || format.includes(row.program ?? "own")) &&
    (wanted === null || (row.cwd !== null && realFolder(row.cwd) === wanted));
}
