import { resolve } from "node:path";
import type { SessionRow } from "@throughline/core/internal";
import { folderScope } from "@throughline/core/internal/node";
import { usageError } from "./error-report.ts";
import type { Host } from "./host.ts";
import { namedFormat } from "./program-names.ts";

/** Holds the options that limit a command to some sessions. */
export interface SessionFilter {
  readonly program?: string;
  readonly folder?: string;
  readonly here?: boolean;
}

/** Returns the names of the given options, as a person types them. */
export function filterFlags({ program, folder, here }: SessionFilter): readonly string[] {
  return [
    ...(program === undefined ? [] : ["--program"]),
    ...(folder === undefined ? [] : ["--folder"]),
    ...(here === true ? ["--here"] : []),
  ];
}

/**
 * Returns the folder that `--folder` or `--here` names, as an absolute path; null without them.
 * @throws {ThroughlineError} USAGE for both at once
 */
export function wantedFolder(
  { workingDirectory }: Pick<Host, "workingDirectory">,
  { folder, here }: Pick<SessionFilter, "folder" | "here">,
): string | null {
  if (here === true && folder !== undefined) throw usageError("--here is --folder .: give one of them.");
  return here === true ? workingDirectory : folder === undefined ? null : resolve(workingDirectory, folder);
}

/** A folder stands for itself and all below it. Links are resolved, so that a link and its target count as one folder. */
export function rowFilter(
  host: Pick<Host, "workingDirectory">,
  filter: SessionFilter,
): (row: Pick<SessionRow, "program" | "cwd">) => boolean {
  const { program } = filter;
  const format = program === undefined ? undefined : namedFormat(program);
  const wanted = wantedFolder(host, filter);
  const isInFolder = wanted === null ? null : folderScope(wanted);
  return (row) =>
    (format === undefined || format.includes(row.program ?? "own")) && (isInFolder === null || isInFolder(row.cwd));
}
