import { createFinding } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { classifySessionFile, readSessionIndex, resolveSessionFile } from "@throughline/openclaw-format/internal";
import type { IndexedSession } from "@throughline/openclaw-format/internal";

/** Options of `inspectIndex`. */
export interface InspectIndexOptions {
  /** Of the index file; named in the findings. */
  readonly path: string;
  /** The directory whose files the index lists. */
  readonly sessionsDir: string;
  /** The names in that directory. */
  readonly fileNames: ReadonlySet<string>;
}

/** Says what is odd about a sessions.json: what cannot be read, and where it disagrees with the files beside it. */
export function inspectIndex(text: string, options: InspectIndexOptions): readonly Finding[] {
  const { path, fileNames } = options;
  const index = readSessionIndex(text, { path });
  const findings = [...index.findings];
  // The tutorials name their files otherwise; only OpenClaw's layout ties an entry to a file of the same directory.
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
