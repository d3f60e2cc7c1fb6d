import { resolve } from "node:path";
import type { SessionState } from "@throughline/core";
import { parseSearch, sessionRow } from "@throughline/core/internal";
import type { HitQuery } from "@throughline/core/internal/node";
import type { CommandContext } from "../command.ts";
import { usageError } from "../error-report.ts";
import { filterFlags, rowFilter, type SessionFilter } from "../session-filter.ts";

export interface SearchOptions extends SessionFilter {
  readonly limit?: number;
  readonly since?: number;
  readonly until?: number;
  readonly role?: string;
  readonly tool?: string;
  readonly file?: string;
  readonly errors?: boolean;
  readonly session?: string;
  readonly allAgents?: boolean;
  readonly archived?: boolean;
  readonly scan?: boolean;
  readonly exact?: boolean;
  readonly group?: boolean;
}

export interface AskedSearch {
  /** Is empty when the filters alone are the search. */
  readonly text: string;
  readonly options: SearchOptions;
  readonly limit: number;
  readonly session: SessionState | null;
}

/**
 * Returns the text of a search that words or filters describe.
 * @throws {ThroughlineError} USAGE for a search for nothing
 */
export function searchedText(words: readonly string[], options: SearchOptions): string {
  const text = words.join(" ").trim();
  // Symbols and emoji are in no index and no scan, so a query without words would always report 0 hits.
  if (text !== "" && parseSearch(text).clauses.length === 0)
    throw usageError("search needs a word to look for: the query has no letter and no digit.", { query: text });
  if (text === "" && recordFlags(options).length === 0 && filterFlags(options).length === 0)
    throw usageError("search needs a word to look for, or a filter such as --file, --errors or --here.");
  return text;
}

/** Returns the names of the given options that choose records. */
export function recordFlags({ role, tool, file, errors, since, until }: SearchOptions): readonly string[] {
  return [
    ...(role === undefined ? [] : ["--role"]),
    ...(tool === undefined ? [] : ["--tool"]),
    ...(file === undefined ? [] : ["--file"]),
    ...(errors === true ? ["--errors"] : []),
    ...(since === undefined ? [] : ["--since"]),
    ...(until === undefined ? [] : ["--until"]),
  ];
}

export function hitQuery(
  { host, scope, signal }: Pick<CommandContext, "host" | "scope" | "signal">,
  { text, options, limit, session }: AskedSearch,
): HitQuery {
  const { role, tool, file, errors, since, until } = options;
  const isOfSessions = rowFilter(host, options);
  return {
    text,
    signal,
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(file === undefined ? {} : { file: filePath(host.workingDirectory, file) }),
    ...(errors === true ? { isError: true } : {}),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    ...(filterFlags(options).length === 0 ? {} : { isWanted: (state) => isOfSessions(sessionRow(state)) }),
    namespace: scope.namespace,
    agentId: options.allAgents === true ? null : scope.agentId,
    state: options.archived === true ? "any" : "active",
    session,
    limit,
    isScan: options.scan === true,
  };
}

/** A path from a dot on is one of this folder. Any other path is the end of the path in the session. */
function filePath(workingDirectory: string, file: string): string {
  return /^\.\.?(?:[/\\]|$)/.test(file) ? resolve(workingDirectory, file) : file;
}
