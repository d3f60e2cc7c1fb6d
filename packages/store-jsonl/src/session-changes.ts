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
import { isUnfinished } from "./find-sessions.ts";
import { entryOf, unlessUndecodable, withoutUndecodableChange } from "./undecodable-entry.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { activeFileName } from "./purges.ts";
import { archivedError, underLocks, type ChangeContext } from "./under-locks.ts";

/**
 * Returns the current session after flushing doubtful records again. The log line of the change may reach the disk with
 * any durability, and would claim that the records are there. Call it under the session's lock.
 * @throws {ThroughlineError} STORE_IO
 */
export function openSettled(agent: AgentSessionFiles, row: SessionRow): SessionRow {
  const held = agent.open(row);
  held?.file.settleDoubt();
  return held?.row ?? row;
}

/** Does the same as `openSettled` for a removal, which does not need a readable transcript. */
export function openToRemove(agent: AgentSessionFiles, row: SessionRow): SessionRow {
  return unlessUndecodable(
    () => openSettled(agent, row),
    () => row,
  );
}

function saveEntry({ context, agent }: ChangeContext, row: SessionRow, entry: SessionEntry): SessionRow {
  const next = withEntry(context, agent.refOf(row), row, entry);
  agent.log.write({ op: "save", rows: [next] });
  return next;
}

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
  agent.adoption.whileMaking(() => writeNewFile(context, agent, row));
  try {
    agent.log.write({ op: archived === null ? "save" : "reset", rows: archived === null ? [row] : [row, archived] });
  } catch (error) {
    context.files.remove(agent.folder.session(fileName));
    throw error;
  }
  // The line is flushed with any durability, because later acknowledged records depend on it. With an archived session
  // `renameFile` flushes the log.
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
  // Another program that knew the session by its id may have started a new file, which must not be overwritten.
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
  const holder = agent.log.image.twinOf(sessionId);
  if (holder !== null) {
    const code = holder === sessionId ? "SESSION_EXISTS" : "ID_CASE_COLLISION";
    throw refused(code, `The id ${quote(sessionId)} meets ${quote(holder)}.`, { id: sessionId, holder });
  }
  // Another program may have created the transcript under either name, and it must not be overwritten.
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
  const kept = withoutUndecodableChange(row);
  return { ...kept, isArchived: true, formerFileName: present, fileName: `${activeFileName(row)}.${why}.${time}` };
}

/**
 * Returns the current name of the transcript. The folder is flushed first, because the row drops its other name and the
 * rename may be unflushed.
 */
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

/** Runs after the commit. A writer of a partial checks the session again after its write, and then sees it archived. */
function removePartial({ log, partials }: ChangeContext["agent"], { sessionId }: SessionRow): void {
  if (!partials.has(sessionId)) return;
  // A power cut may undo the archiving, and the active session then needs its open reply.
  log.flushNow();
  partials.remove(sessionId, { isFlushed: true });
}

/** Runs after the commit. When the rename fails, the file keeps its former name, which the row also states. */
function renameFile({ context, agent, durability }: ChangeContext, row: SessionRow): void {
  const { files } = context;
  const from = agent.folder.session(row.formerFileName ?? row.fileName);
  const to = agent.folder.session(row.fileName);
  if (from === to || files.facts(from) === null) return;
  // A renamed file without its log line on the disk would be a session without a transcript.
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
 * Saves the entry if the session is still at the revision. The result is a new session, a reset, or the next revision.
 * Returns the session as this call left it, because other writers may change it once the locks are released.
 * `beganAtMs` is the start of a session that comes from elsewhere.
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
    const row = now === null ? null : openSettled(agent, now);
    // Undecodable patches leave the revision unknown, so this throws.
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
