import {
  assertSessionId,
  createFinding,
  nextUpdatedAtMs,
  patchEntry,
  quote,
  refused,
  sessionNotFound,
} from "@throughline/core/internal";
import {
  type MoveAction,
  type SessionEntry,
  sessionRef,
  type SessionRef,
  type SessionState,
  type ThroughlineError,
} from "@throughline/core";
import { assertKeyFits } from "@throughline/store-kit/internal";
import { assertNoArchiveName } from "./recover-entries.ts";
import { makeAgentFolder } from "./agent-folder.ts";
import { transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { writeNewFile } from "./own-header.ts";
import { afterCommit, fileError, flushFolder, withFileErrors } from "./file-work.ts";
import { isUnfinished } from "./foreign-sessions.ts";
import { entryOf, unlessSealed, withoutSealedChange } from "./sealed-entry.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { activeFileName } from "./purges.ts";
import { archivedError, underLocks, type ChangeContext } from "./under-locks.ts";

/**
 * The session as it is now, once records whose flush failed are on the disk. Whatever durability was asked, what the log says
 * of the session may get there, and would say that they are. Under the session's lock.
 * @throws {ThroughlineError} STORE_IO
 */
export function heldSettled(agent: AgentSessionFiles, row: SessionRow): SessionRow {
  const held = agent.hold(row);
  held?.file.settleDoubt();
  return held?.row ?? row;
}

/** Does what `heldSettled` does, for a session that goes: nothing of a damaged transcript is needed for that. */
export function heldToRemove(agent: AgentSessionFiles, row: SessionRow): SessionRow {
  return unlessSealed(
    () => heldSettled(agent, row),
    () => row,
  );
}

/** The entry of a session that stays: a new revision. */
function saveEntry({ context, agent }: ChangeContext, row: SessionRow, entry: SessionEntry): SessionRow {
  const next = withEntry(context, agent.refOf(row), row, entry);
  agent.log.write({ op: "save", rows: [next] });
  return next;
}

/** A new session under the key; the one that had it is archived in the same commit. */
function createSession(
  scope: ChangeContext,
  ref: SessionRef,
  entry: SessionEntry,
  current: SessionRow | null,
  beganAtMs: number | null,
): SessionRow {
  const { context, agent } = scope;
  const { sessionId } = entry;
  assertCanBegin(scope, ref.key, sessionId);
  const nowMs = context.clock.nowMs();
  const fileName = transcriptFileNameOf({ sessionId, key: ref.key });
  const blank: SessionRow = {
    sessionId,
    key: ref.key,
    fileName,
    entry,
    revision: current?.revision ?? 0,
    createdAtMs: beganAtMs ?? nowMs,
    ...(beganAtMs === null ? {} : { broughtAtMs: nowMs }),
    updatedAtMs: typeof entry.updatedAt === "number" ? 0 : nowMs,
    isArchived: false,
  };
  const row = withEntry(context, ref, blank, entry);
  const archived = current === null ? null : archivedRow(scope, current, "reset");
  agent.foreign.whileMaking(() => writeNewFile(context, agent, row));
  try {
    agent.log.write({ op: archived === null ? "save" : "reset", rows: archived === null ? [row] : [row, archived] });
  } catch (error) {
    context.files.remove(agent.folder.session(fileName));
    throw error;
  }
  // On the disk whatever was asked: what is acknowledged in the session later hangs on it. An archived file is renamed after it.
  if (scope.durability !== "disk" && archived === null) agent.log.flushNow();
  context.emit({ name: "session-created", ref: agent.refOf(row), sessionId });
  if (archived !== null) finishArchiving(scope, archived);
  return row;
}

/** @throws {ThroughlineError} SESSION_EXISTS, KEY_AGENT_MISMATCH, KEY_INVALID */
export function moveSession(scope: ChangeContext, row: SessionRow, action: MoveAction): SessionRow {
  const { agent } = scope;
  if (action.kind === "archive") return archiveSession(scope, row);
  const { archiveId: _archiveId, key, ...owner } = agent.refOf(row);
  const target = action.kind === "rename" ? sessionRef({ ...owner, key: action.key }) : { ...owner, key };
  const holderId = agent.log.idOf(target.key);
  if (holderId !== null && (holderId !== row.sessionId || action.kind === "restore")) {
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target });
  }
  const { formerFileName: _former, ...rest } = row;
  if (action.kind === "rename") {
    const renamed = { ...rest, key: target.key, fileName: presentName(scope, row) };
    agent.log.write({ op: "rename", rows: [renamed] });
    return renamed;
  }
  const formerFileName = presentName(scope, row);
  const restored = { ...rest, isArchived: false, formerFileName, fileName: activeFileName(row) };
  const path = agent.folder.session(restored.fileName);
  // Another program that knew it by its id may have begun it anew.
  if (restored.fileName !== formerFileName && scope.context.files.facts(path) !== null)
    throw refused("SESSION_EXISTS", `There is a file ${quote(path)} already.`, { ...target, path });
  agent.log.write({ op: "restore", rows: [restored] });
  renameFile(scope, restored);
  return restored;
}

export function archiveSession(scope: ChangeContext, row: SessionRow): SessionRow {
  if (row.isArchived) return row;
  const archived = archivedRow(scope, row, "deleted");
  scope.agent.log.write({ op: "archive", rows: [archived] });
  finishArchiving(scope, archived);
  return archived;
}

/** @throws {ThroughlineError} SESSION_EXISTS, ID_CASE_COLLISION, SESSION_ID_INVALID, KEY_INVALID */
export function assertCanBegin({ context, agent }: ChangeContext, key: string, sessionId: string): void {
  assertSessionId(sessionId);
  assertNoArchiveName(sessionId);
  assertKeyFits(key);
  const holder = agent.log.twinOf(sessionId);
  if (holder !== null) {
    const code = holder === sessionId ? "SESSION_EXISTS" : "ID_CASE_COLLISION";
    throw refused(code, `The id ${quote(sessionId)} meets ${quote(holder)}.`, { id: sessionId, holder });
  }
  // Somebody else may have its transcript under either name.
  for (const name of new Set([`${sessionId}.jsonl`, transcriptFileNameOf({ sessionId, key })])) {
    const path = agent.folder.session(name);
    const facts = context.files.facts(path);
    if (facts?.kind === "file" && isUnfinished(context.files, path)) context.files.remove(path);
    else if (facts !== null)
      throw refused("SESSION_EXISTS", `There is a file ${quote(path)} already.`, { id: sessionId, path });
  }
}

function withEntry(context: StoreContext, ref: SessionRef, row: SessionRow, entry: SessionEntry): SessionRow {
  const { updatedAtMs, wasClamped } = nextUpdatedAtMs(row.updatedAtMs, entry.updatedAt, context.clock.nowMs());
  if (wasClamped)
    context.emit({ name: "updated-at-clamped", ref, claimedMs: Number(entry.updatedAt), storedMs: updatedAtMs });
  return {
    ...row,
    entry: wasClamped ? patchEntry(entry, { updatedAt: updatedAtMs }) : entry,
    updatedAtMs,
    revision: row.revision + 1,
  };
}

function archivedRow(
  { context, agent }: Pick<ChangeContext, "context" | "agent">,
  row: SessionRow,
  why: "reset" | "deleted",
): SessionRow {
  const time = new Date(context.clock.nowMs()).toISOString().replaceAll(":", "-");
  const present = presentName({ context, agent }, row);
  const kept = withoutSealedChange(row);
  return { ...kept, isArchived: true, formerFileName: present, fileName: `${activeFileName(row)}.${why}.${time}` };
}

/** The name the transcript goes by, for a row that forgets another it had: whoever changed that may not have flushed it. */
function presentName({ context, agent }: Pick<ChangeContext, "context" | "agent">, row: SessionRow): string {
  const { sessions } = agent.folder;
  if (row.formerFileName !== undefined) withFileErrors(sessions, () => flushFolder(context.files, sessions));
  return agent.fileNameOf(row);
}

function finishArchiving(scope: ChangeContext, row: SessionRow): void {
  afterCommit(scope.agent.folder.own, () => removePartial(scope.agent, row));
  renameFile(scope, row);
  scope.context.emit({ name: "session-archived", ref: scope.agent.refOf(row), sessionId: row.sessionId });
}

/** After the commit: whoever writes one now looks at the session again when it is there. */
function removePartial({ log, partials }: ChangeContext["agent"], { sessionId }: SessionRow): void {
  if (!partials.has(sessionId)) return;
  // A session that a power cut makes active again has its open reply.
  log.flushNow();
  partials.remove(sessionId, { isFlushed: true });
}

/** After the commit. When it fails the file goes by its former name, which the row still knows. */
function renameFile({ context, agent, durability }: ChangeContext, row: SessionRow): void {
  const { files } = context;
  const from = agent.folder.session(row.formerFileName ?? row.fileName);
  const to = agent.folder.session(row.fileName);
  if (from === to || files.facts(from) === null) return;
  // A name that is on the disk before the line that says so would be a session without its transcript.
  agent.log.flushNow();
  try {
    files.rename(from, to);
    if (durability === "disk") flushFolder(files, agent.folder.sessions);
  } catch (error) {
    const { message } = fileError(error, from);
    context.emit({
      name: "finding",
      ref: agent.refOf(row),
      finding: createFinding("FILE_UNREADABLE", `The transcript keeps its former name: ${message}`, {
        path: from,
        key: row.key,
      }),
    });
  }
}

/**
 * Saves the entry if it is still at the revision: a new session, a reset, or the same session's next revision. Gives the
 * session as this left it: when the locks are let go of it may be appended to, or purged. `beganAtMs`: of one that comes from
 * elsewhere.
 */
export async function saveSession(
  scope: ChangeContext,
  ref: SessionRef,
  entry: SessionEntry,
  { ifRevision, beganAtMs }: { readonly ifRevision: number | null; readonly beganAtMs: number | null },
): Promise<SessionState> {
  const { context, agent } = scope;
  if (ref.archiveId !== undefined) throw (await agent.locate(ref)) === null ? sessionNotFound(ref) : archivedError(ref);
  const find = async (): Promise<SessionRow | null> => {
    const current = await agent.locate(ref);
    if (current === null && ifRevision !== null) throw revisionConflict(null);
    if (current === null) makeAgentFolder(context.files, context.root, ref);
    return current;
  };
  const wants = { find, others: () => [entry], needsEntries: () => true };
  return underLocks(scope, ref, wants, (now) => {
    const row = now === null ? null : heldSettled(agent, now);
    // Whose changes cannot be decoded is at a revision that nobody knows.
    if (row !== null) entryOf(row);
    if ((row?.revision ?? null) !== ifRevision) throw revisionConflict(row?.revision ?? null);
    const isOfSession = row?.sessionId === entry.sessionId;
    const next = isOfSession ? saveEntry(scope, row, entry) : createSession(scope, ref, entry, row, beganAtMs);
    return afterCommit(agent.folder.agent, () => agent.state(next));
  });
}

function revisionConflict(revision: number | null): ThroughlineError {
  return refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
}
