import { createFinding, quote } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import type { EntriesLog } from "./entries-log.ts";
import type { Files } from "./files.ts";
import { findForeignSessions, type FoundSession } from "./find-sessions.ts";
import { readLine } from "./read-line.ts";
import { archivedByThem, fieldsOf } from "./merge-entry.ts";
import { archivedFrom, denyingFinding, denyingUnread, rowsLeft } from "./recover-entries.ts";
import { readableEntry, UndecodableChange, unlessUndecodable } from "./undecodable-entry.ts";
import type { SessionIndex } from "./session-index.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import type { SessionsMirror } from "./sessions-mirror.ts";

export interface AdoptionContext {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  readonly index: SessionIndex;
  readonly mirror: SessionsMirror;
  readonly agentId: string;
  readonly nowMs: number;
  /** Opens the session with all its records; returns null when its transcript is gone. */
  open(row: SessionRow): OpenTranscript | null;
  readonly onFinding: (finding: Finding) => void;
}

export interface Adoption {
  readonly change: RowChange | null;
  /** Is true when a transcript could not become a session, so the folder must be searched again later. */
  readonly hasStrays: boolean;
  /** States the number of names in the sessions folder, because a large folder is searched less often. */
  readonly nameCount: number;
}

/**
 * Finds sessions that the entries log does not name. Without a log there are three sources, in order of trust: the rows
 * of the index, sessions.json (or what this store last wrote there), and the transcripts.
 */
export function adoptSessions(scope: AdoptionContext): Adoption {
  const { files, folder, log, index, mirror, agentId, nowMs } = scope;
  const isLogMissing = log.identity === "";
  const left = isLogMissing ? rowsLeft({ files, folder, indexed: index.rows() ?? [] }) : [];
  const entries = mirror.entries();
  const { found, hasStrays, present } = findForeignSessions({
    files,
    folder,
    log,
    entries,
    written: mirror.written,
    left,
    isLogLost: isLogMissing || log.damage.isThere,
    agentId,
    nowMs,
    onFinding: scope.onFinding,
  });
  const rows = [
    ...left,
    ...found.map((session) => taken(scope, session)),
    ...renamedRows(log.rows.values(), present, entries),
  ];
  if (left.length > 0) scope.onFinding(recoveredFinding(folder, left.length));
  const keyed = left.map(({ sessionId }) => ({ sessionId, appends: index.keyedOf(sessionId) }));
  return {
    change: rows.length === 0 ? null : { op: "adopt", rows, keyed: keyed.filter(({ appends }) => appends.length > 0) },
    hasStrays,
    nameCount: present.size,
  };
}

/**
 * Returns sessions under the name that another program gave their transcript: OpenClaw renames the transcript of a
 * session that it resets or deletes. Such a session is archived, unless sessions.json still names it.
 */
function renamedRows(
  rows: Iterable<SessionRow>,
  present: ReadonlySet<string>,
  entries: ReadonlyMap<string, unknown>,
): readonly SessionRow[] {
  const names = archiveNames(present);
  if (names.size === 0) return [];
  return [...rows].flatMap((row) => {
    if (!row.isArchived && fieldsOf(entries.get(row.key))?.["sessionId"] === row.sessionId) return [];
    const renamed = renamedRow(row, present, names);
    if (renamed === null) return [];
    return row.isArchived ? renamed : archivedByThem(renamed);
  });
}

/** Returns the row under the name that another program gave its transcript, or null if it did not. */
export function renamedRow(
  { formerFileName, ...row }: SessionRow,
  present: ReadonlySet<string>,
  names: ReadonlyMap<string, string>,
): SessionRow | null {
  if (present.has(row.fileName) || (formerFileName !== undefined && present.has(formerFileName))) return null;
  const fileName = names.get(archivedFrom(row.fileName) ?? row.fileName);
  return fileName === undefined ? null : { ...row, fileName };
}

/** Maps the names of transcripts to the newest names under which they were archived. */
export function archiveNames(present: ReadonlySet<string>): ReadonlyMap<string, string> {
  const timeOf = (name: string, active: string): string => name.slice(active.length + 1).replace(/^[a-z]+\./, "");
  const newest = new Map<string, string>();
  for (const name of present) {
    const active = archivedFrom(name);
    if (active === null) continue;
    const known = newest.get(active);
    if (known === undefined || timeOf(known, active) < timeOf(name, active)) newest.set(active, name);
  }
  return newest;
}

/**
 * Sets the revision up to which the row already contains the transcript's patches. Later patches are applied from the
 * transcript.
 */
function taken(scope: AdoptionContext, { row, entry }: FoundSession): SessionRow {
  const { line } = scope.log.damage;
  const held = entry === "lost" ? holdLost(scope, row) : holdPast(scope, row);
  if (entry === "lost" || (entry === "copied" && line !== null)) {
    const known = { ...(held?.row ?? row), revision: held?.transcript.highestRevision ?? row.revision };
    const lost = denyingUnread(known, line);
    scope.onFinding(denyingFinding(lost, scope.folder.session(row.fileName), "The entry is lost."));
    return lost;
  }
  if (held === null) return row;
  const { patches, highestRevision, isHeaderOurs } = held.transcript;
  // Another program copied this transcript from one of this store. The patches in it changed the original's entry, so
  // they do not apply here.
  if (!isHeaderOurs) return { ...row, revision: highestRevision + 1 };
  if (entry === "whole") return row;
  const known = patches.filter(({ atMs }) => atMs <= row.updatedAtMs).map(({ revision }) => revision);
  return { ...row, revision: Math.max(row.revision, ...known) };
}

/** Does the same as `open`, but returns null for a damaged transcript, because such a session is adopted too. */
function holdPast(scope: Pick<AdoptionContext, "open">, row: SessionRow): OpenTranscript | null {
  return unlessUndecodable(
    () => scope.open(row),
    () => null,
  );
}

/**
 * Opens a session whose entry is lost. Under a codec a patch is bound to the session's key at that time. After a rename
 * that key may be lost, and the patch cannot be decoded. The patches are then skipped, if the first record proves that
 * the codec is right. One lost entry must not keep all other sessions closed.
 */
function holdLost(scope: AdoptionContext, row: SessionRow): OpenTranscript | null {
  const held = holdPast(scope, row);
  if (!(held?.row.entry instanceof UndecodableChange)) return held;
  const { file, path, transcript } = held;
  readLine(transcript, 1, file.readBytes(path, transcript.startOf(1), transcript.startOf(2) - 1)).payload();
  return { ...held, row };
}

/** Returns the sessions whose newest log line may be one that cannot be read. */
export function suspectRows(
  log: Pick<EntriesLog, "damage" | "row" | "find">,
): readonly { readonly row: SessionRow; readonly line: number | null }[] {
  const rows = { row: (id: string) => log.row(id), holder: (key: string) => log.find(key, undefined) };
  return log.damage.suspected(rows).flatMap(({ row, line }) => (row === null ? [] : [{ row, line }]));
}

/** Denies sending to sessions whose newest log line is broken, because that line may have denied it. */
export function denySuspects(scope: Pick<AdoptionContext, "folder" | "log" | "open" | "onFinding">): RowChange | null {
  const { folder, log } = scope;
  const rows = suspectRows(log).flatMap(({ row, line }) => {
    const now = holdPast(scope, row)?.row ?? row;
    // An undecodable entry cannot be changed yet. Until it can be decoded, no send is allowed in the session.
    if (readableEntry(now) === null) return [];
    // The line may have archived the session, if another session has its key now.
    const holder = log.find(now.key, undefined);
    const isArchived = now.isArchived || (holder !== null && holder.sessionId !== now.sessionId);
    const denied = denyingUnread({ ...now, isArchived }, line);
    const why = "A line of the entries log that cannot be read was about it.";
    scope.onFinding(denyingFinding(denied, folder.entriesLog, why));
    return [denied];
  });
  return rows.length === 0 ? null : { op: "save", rows };
}

function recoveredFinding({ entriesLog, index }: AgentFolder, count: number): Finding {
  const message = `The entries log was gone; ${count} sessions were taken from ${quote(index)}.`;
  return createFinding("ENTRIES_RECOVERED", message, { path: entriesLog, repaired: true });
}
