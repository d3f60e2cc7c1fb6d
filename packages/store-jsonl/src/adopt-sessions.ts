import { createFinding, quote } from "@throughline/core/internal";
import { type Finding } from "@throughline/core";
import type { AgentFolder } from "./agent-folder.ts";
import type { HeldSession } from "./held-session.ts";
import type { EntriesLog } from "./entries-log.ts";
import type { Files } from "./files.ts";
import { findForeignSessions, type FoundSession } from "./foreign-sessions.ts";
import { readLine } from "./read-line.ts";
import { denyingFinding, denyingUnread, rowsLeft } from "./recover-entries.ts";
import { readableEntry, SealedChange, unlessSealed } from "./sealed-entry.ts";
import type { SessionIndex } from "./session-index.ts";
import type { RowChange, SessionRow } from "./session-row.ts";
import type { SessionsView } from "./sessions-view.ts";

export interface AdoptionContext {
  readonly files: Files;
  readonly folder: AgentFolder;
  readonly log: EntriesLog;
  readonly index: SessionIndex;
  readonly view: SessionsView;
  readonly agentId: string;
  readonly nowMs: number;
  /** The session with every record of its transcript; null when that is gone. */
  hold(row: SessionRow): HeldSession | null;
  readonly onFinding: (finding: Finding) => void;
}

export interface Adoption {
  /** Null when there is nothing to take over. */
  readonly change: RowChange | null;
  /** There are transcripts that no session could be made of. */
  readonly hasStrays: boolean;
  /** How many names there are in the folder. */
  readonly nameCount: number;
}

/**
 * Sessions that the entries log does not name. Without a log, its sources in order of trust are: what the index kept of
 * it, sessions.json or what this store wrote there last, and the transcripts.
 */
export function adoptSessions(scope: AdoptionContext): Adoption {
  const { files, folder, log, index, view, agentId, nowMs } = scope;
  const isLogMissing = log.identity === "";
  const left = isLogMissing ? rowsLeft({ files, folder, indexed: index.rows() ?? [] }) : [];
  const entries = view.entries();
  const { found, hasStrays, nameCount } = findForeignSessions({
    files,
    folder,
    log,
    entries,
    written: view.written,
    left,
    isLogLost: isLogMissing || log.damage.isThere,
    agentId,
    nowMs,
    onFinding: scope.onFinding,
  });
  const rows = [...left, ...found.map((session) => taken(scope, session))];
  if (left.length > 0) scope.onFinding(recoveredFinding(folder, left.length));
  const keyed = left.map(({ sessionId }) => ({ sessionId, appends: index.keyed((keys) => keys.of(sessionId)) ?? [] }));
  return {
    change: rows.length === 0 ? null : { op: "adopt", rows, keyed: keyed.filter(({ appends }) => appends.length > 0) },
    hasStrays,
    nameCount,
  };
}

/** Of which changes in its transcript the row knows already: those that follow are taken from there. */
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
  // A copy that another program made of a transcript of ours holds patches of the original's entry: they are not its own.
  if (!isHeaderOurs) return { ...row, revision: highestRevision + 1 };
  if (entry === "whole") return row;
  const known = patches.filter(({ atMs }) => atMs <= row.updatedAtMs).map(({ revision }) => revision);
  return { ...row, revision: Math.max(row.revision, ...known) };
}

/** Does what `hold` does, and gives null also for a session whose transcript is damaged: it is known all the same. */
function holdPast(scope: Pick<AdoptionContext, "hold">, row: SessionRow): HeldSession | null {
  return unlessSealed(
    () => scope.hold(row),
    () => null,
  );
}

/**
 * Under a codec a change of the entry is bound to the key its session had then, and after a rename nobody may know that any
 * more. Then no change is taken, should the records say that the codec is the right one: one session's lost entry must not
 * keep all others shut.
 */
function holdLost(scope: AdoptionContext, row: SessionRow): HeldSession | null {
  const held = holdPast(scope, row);
  if (!(held?.row.entry instanceof SealedChange)) return held;
  const { file, path, transcript } = held;
  readLine(transcript, 1, file.readBytes(path, transcript.startOf(1), transcript.startOf(2) - 1)).payload();
  return { ...held, row };
}

/** Sessions of the log whose newest line may be one that cannot be read. */
export function suspectRows(
  log: Pick<EntriesLog, "damage" | "row" | "find">,
): readonly { readonly row: SessionRow; readonly line: number | null }[] {
  const rows = { row: (id: string) => log.row(id), holder: (key: string) => log.find(key, undefined) };
  return log.damage.suspected(rows).flatMap(({ row, line }) => (row === null ? [] : [{ row, line }]));
}

/** Sessions whose newest line in the log is broken: it may have said that they must not send. */
export function denySuspects(scope: Pick<AdoptionContext, "folder" | "log" | "hold" | "onFinding">): RowChange | null {
  const { folder, log } = scope;
  const rows = suspectRows(log).flatMap(({ row, line }) => {
    const now = holdPast(scope, row)?.row ?? row;
    // Once it can be read: until then nobody sends in it.
    if (readableEntry(now) === null) return [];
    // The line may have said that the session is archived, where another one has its key since.
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
