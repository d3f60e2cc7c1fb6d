import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { readSessionIndex } from "./session-index.ts";
import type { IndexedSession } from "./session-index.ts";
import { classifySessionFile } from "./transcript-file-name.ts";
import { resolveSessionFile } from "./transcript-paths.ts";

/** Holds the options of `inspectIndex`. */
export interface InspectIndexOptions {
  /** States the path of the index file, which the findings name. */
  readonly path: string;
  /** States the directory whose files the index lists. */
  readonly sessionsDir: string;
  /** Lists the file names in that directory. */
  readonly fileNames: ReadonlySet<string>;
}

/**
 * Reports the entries of a sessions.json that cannot be read, and the points where the index and the files beside it
 * disagree.
 */
export function inspectIndex(text: string, options: InspectIndexOptions): readonly Finding[] {
  const { path, fileNames } = options;
  const index = readSessionIndex(text, { path });
  const findings = [...index.findings];
  // The tutorials use other file names. Only OpenClaw's layout ties an entry to a file of the same directory.
  if (index.shape !== "openclaw") return findings;
  const named = new Set<string>();
  for (const session of index.sessions) findings.push(...compareWithFile(session, options, named));
  for (const name of fileNames) {
    const { kind, sessionId } = classifySessionFile(name);
    if (kind !== "transcript" || named.has(name)) continue;
    const message = `The index does not name ${JSON.stringify(name)} (session ${JSON.stringify(sessionId)}).`;
    findings.push(createFinding("SESSION_UNINDEXED", message, { path }));
  }
  return findings;
}

function compareWithFile(
  { key, sessionId, file }: IndexedSession,
  { path, sessionsDir, fileNames }: InspectIndexOptions,
  named: Set<string>,
): readonly Finding[] {
  const findings: Finding[] = [];
  try {
    const resolved = resolveSessionFile(sessionsDir, { sessionId, sessionFile: file });
    named.add(resolved.fileName);
    if (resolved.isForeign) {
      const message = `The entry names ${JSON.stringify(file)}; ${JSON.stringify(resolved.fileName)} beside the index is meant.`;
      findings.push(createFinding("SESSION_FILE_FOREIGN", message, { path, key }));
    }
    if (!fileNames.has(resolved.fileName)) {
      findings.push(
        createFinding("SESSION_FILE_MISSING", `${JSON.stringify(resolved.fileName)} is not there.`, { path, key }),
      );
    }
  } catch (error) {
    if (!hasErrorCode(error, "SESSION_ID_INVALID")) throw error;
    findings.push(createFinding("ENTRY_UNREADABLE", error.message, { path, key }));
  }
  return findings;
}
