import { createFinding, quote, refused } from "@throughline/core/internal";
import { type Finding, type SessionEntry } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { Files } from "./files.ts";
import { DamagedEntry, entryOf } from "./sealed-entry.ts";
import type { SessionRow } from "./session-row.ts";

export interface LeftRows {
  readonly files: Files;
  readonly folder: AgentFolder;
  /** What the index kept of a log that is gone. */
  readonly indexed: Iterable<SessionRow>;
}

/** Of the sessions the index knows those that still have a transcript. */
export function rowsLeft({ files, folder, indexed }: LeftRows): readonly SessionRow[] {
  const isThere = (name: string | undefined): boolean =>
    name !== undefined && files.facts(folder.session(name))?.kind === "file";
  return [...indexed].filter(({ fileName, formerFileName }) => isThere(fileName) || isThere(formerFileName));
}

/**
 * The row of a session of ours whose entry is lost. It may have been one that must not send: until somebody says what its
 * `sendPolicy` is, it denies.
 */
export function denying(row: SessionRow): SessionRow & { readonly entry: SessionEntry } {
  const entry: SessionEntry = { ...entryOf(row), sendPolicy: "deny" };
  return { ...row, entry, revision: row.revision + 1 };
}

/**
 * The same for a session whose newest line of the log was damaged: it cannot be read before a repair. `line`: null where a
 * power cut left the line, which may never have been acknowledged.
 */
export function denyingUnread(row: SessionRow, line: number | null): SessionRow {
  const denied = denying(row);
  return line === null ? denied : { ...denied, entry: new DamagedEntry(denied.entry, line) };
}

/** The message for a session that is denied for that reason. */
export function denyingFinding({ key, entry }: SessionRow, path: string, why: string): Finding {
  if (entry instanceof DamagedEntry) {
    const message = `${why} A repair takes what is left of the entry.`;
    return createFinding("ENTRY_UNREADABLE", message, { path, key, line: entry.line });
  }
  const message = `${why} The session denies sending until its sendPolicy is set again.`;
  return createFinding("ENTRY_UNREADABLE", message, { path, key, repaired: true });
}

/** A session that is read again after a repair, with what is left of its entry. */
export function withRepairedEntry({ entry, ...row }: SessionRow): SessionRow | null {
  return entry instanceof DamagedEntry ? { ...row, entry: entry.under, revision: row.revision + 1 } : null;
}

/**
 * A transcript of such an id would go with the session that its name begins with.
 * @throws {ThroughlineError} SESSION_ID_INVALID
 */
export function assertNoArchiveName(sessionId: string): void {
  if (!sessionId.includes(".jsonl.")) return;
  const message = `The session id ${quote(sessionId)} looks like the archive of another session's transcript.`;
  throw refused("SESSION_ID_INVALID", message, { sessionId });
}

/** The name a transcript had before it was archived; null for one that was not. */
export function archivedFrom(name: string): string | null {
  const at = Math.max(name.lastIndexOf(".jsonl.reset."), name.lastIndexOf(".jsonl.deleted."));
  return at < 1 || name.endsWith(".") ? null : name.slice(0, at + ".jsonl".length);
}
