import { createFinding, quote, refused } from "@throughline/core/internal";
import type { Finding, SessionEntry } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { Files } from "./files.ts";
import { DamagedEntry, entryOf } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";

export interface LeftRows {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly indexed: Iterable<SessionRow>;
}

export function rowsLeft({ files, folder, indexed }: LeftRows): readonly SessionRow[] {
  const isThere = (name: string | undefined): boolean =>
    name !== undefined && files.facts(folder.session(name))?.kind === "file";
  return [...indexed].filter(({ fileName, formerFileName }) => isThere(fileName) || isThere(formerFileName));
}

/**
 * Denies sending in a session whose entry is lost, because the lost entry may have denied it. The denial lasts until
 * `sendPolicy` is set again.
 */
function denying(row: SessionRow): SessionRow & { readonly entry: SessionEntry } {
  const entry: SessionEntry = { ...entryOf(row), sendPolicy: "deny" };
  return { ...row, entry, revision: row.revision + 1 };
}

/**
 * Does the same for a session whose newest log line was damaged, and whose entry stays unreadable until a repair. A
 * null `line` means that a power cut left the line, which may never have been acknowledged.
 */
export function denyingUnread(row: SessionRow, line: number | null): SessionRow {
  const denied = denying(row);
  return line === null ? denied : { ...denied, entry: new DamagedEntry(denied.entry, line) };
}

export function denyingFinding({ key, entry }: SessionRow, path: string, why: string): Finding {
  if (entry instanceof DamagedEntry) {
    const message = `${why} A repair takes what is left of the entry.`;
    return createFinding("ENTRY_UNREADABLE", message, { path, key, line: entry.line });
  }
  const message = `${why} The session denies sending until its sendPolicy is set again.`;
  return createFinding("ENTRY_UNREADABLE", message, { path, key, repaired: true });
}

/** Returns the row with the rest of its entry, readable again after a repair; null for an undamaged entry. */
export function withRepairedEntry({ entry, ...row }: SessionRow): SessionRow | null {
  return entry instanceof DamagedEntry ? { ...row, entry: entry.under, revision: row.revision + 1 } : null;
}

/**
 * Refuses ids that look like an archive name, because such a transcript would be removed with the session that the name
 * starts with.
 * @throws {ThroughlineError} SESSION_ID_INVALID
 */
export function assertNoArchiveName(sessionId: string): void {
  if (!sessionId.includes(".jsonl.")) return;
  const message = `The session id ${quote(sessionId)} looks like the archive of another session's transcript.`;
  throw refused("SESSION_ID_INVALID", message, { sessionId });
}

export function archivedFrom(name: string): string | null {
  const at = Math.max(name.lastIndexOf(".jsonl.reset."), name.lastIndexOf(".jsonl.deleted."));
  return at < 1 || name.endsWith(".") ? null : name.slice(0, at + ".jsonl".length);
}
