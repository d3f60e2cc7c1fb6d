import { setTimeout as pause } from "node:timers/promises";
import type { SessionEntry, SessionRef, SessionState, ThroughlineError } from "@throughline/core";
import { refused, sessionNotFound } from "@throughline/core/store";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { replaceLost } from "./append-records.ts";
import type { HeldSession } from "./held-session.ts";
import { holdForWriting, holdIfThere, makeDurable } from "./durable-session.ts";
import { afterCommit } from "./file-work.ts";
import { createSession, prepareAgentFolder, saveEntry, type ChangeContext } from "./session-changes.ts";
import { entryOf } from "./sealed-entry.ts";
import type { SessionRow } from "./session-row.ts";
import { growingBytes } from "./transcript-findings.ts";

/** A write that is under way is done by then. */
const settlingMs = 20;
/** Somebody who writes without end is not waited for. */
const maxSettlingLooks = 50;

export interface AccessOptions {
  /** Also hold the lock of the entries log. */
  readonly changesEntries?: boolean;
  /** Archived sessions too; without it they are refused. */
  readonly isArchivedToo?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Since when the caller has waited, by `monotonicMs`. */
  readonly sinceMs?: number;
  /** The row, where it was just looked up. */
  readonly row?: SessionRow;
  /** The session with every record of it: some answers lie far back. @default false */
  readonly isWhole?: boolean;
}

/** The session's row. @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED */
export async function locateSession(
  agent: AgentSessionFiles,
  ref: SessionRef,
  isArchivedToo: boolean,
): Promise<SessionRow> {
  const row = await agent.locate(ref);
  if (row === null) throw sessionNotFound(ref);
  if (row.isArchived && !isArchivedToo) throw archivedError(ref);
  return row;
}

/** Runs work on a session under its locks, after everything others wrote was read. The session must have its file. */
export async function withSession<T>(
  scope: ChangeContext,
  ref: SessionRef,
  options: AccessOptions,
  work: (held: HeldSession) => T,
): Promise<T> {
  const { agent } = scope;
  const { row: _row, ...others } = options;
  const isWhole = options.isWhole === true;
  const settling = { bytes: null as number | null, looks: 0 };
  for (let access = options, isLookedFor = false; ;) {
    let [isGone, isMarked] = [false, false];
    let nowBytes: number | null = null;
    const done = await withRow(scope, ref, access, (row) => {
      const held = isLookedFor ? holdForWriting(scope, row, isWhole) : holdIfThere(scope, row, isWhole);
      isGone = held === null;
      if (held === null) return null;
      nowBytes = settling.looks < maxSettlingLooks ? growingBytes(held.transcript, held.file.facts) : settling.bytes;
      if (nowBytes !== settling.bytes) return null;
      if (!held.transcript.options.isMixed || agent.place.isOpenclaws)
        return { value: work(replaceLost(scope.context, agent, held)) };
      // Another program writes here: from now on with its locks.
      agent.place.markOpenclaw();
      isMarked = true;
      return null;
    });
    if (done !== null) return done.value;
    if (nowBytes !== settling.bytes) {
      settling.bytes = nowBytes;
      settling.looks++;
      if (nowBytes !== null) await pause(settlingMs);
      continue;
    }
    if (isMarked) await sayInLog(scope, ref);
    if (!isGone) continue;
    // Another program has reset or deleted the session: its index says what the key means now.
    await agent.foreign.takeView();
    [access, isLookedFor] = [others, true];
  }
}

/** Changes the entries log without changing anything: every process looks then whether OpenClaw was met. */
function sayInLog({ agent: { folder, log }, context }: ChangeContext, ref: SessionRef): Promise<void> {
  return context.locks.hold([folder.entriesLock], () => {
    log.refreshHeld();
    const row = log.find(ref.key, ref.archiveId);
    if (row !== null) log.write({ op: "save", rows: [row] });
  });
}

/** As `withSession`, for work on the row alone: the transcript may be gone. */
export async function withRow<T>(
  scope: ChangeContext,
  ref: SessionRef,
  options: AccessOptions,
  work: (row: SessionRow) => T,
): Promise<T> {
  const { agent, context, durability } = scope;
  const { changesEntries = false, isArchivedToo = false, signal, sinceMs } = options;
  const { log } = agent;
  for (let known = options.row; ; known = undefined) {
    const row = known ?? (await locateSession(agent, ref, isArchivedToo));
    agent.prepareWriting();
    // Before the lock is taken, so that nobody waits while a long file is read.
    if (options.isWhole === true) agent.hold(row, true);
    agent.readAhead(row);
    const locks = agent.place.locksFor([row.sessionId], [row.fileName], changesEntries);
    const { isOpenclaws } = agent.place;
    const held = (): { readonly value: T } | null => {
      // One look at the log: an archive, a rename or a purge of another process holds this lock too.
      if (changesEntries) log.refreshHeld();
      else log.refresh();
      // Met meanwhile: then its locks are needed too.
      if (agent.place.isOpenclaws !== isOpenclaws) return null;
      const now = log.find(ref.key, ref.archiveId);
      // Reset, archived or renamed while this waited: then it is another session that is meant.
      if (now?.sessionId !== row.sessionId) return null;
      return { value: work(changesEntries && durability === "disk" ? makeDurable(scope, now) : now) };
    };
    const done = await context.locks.hold(locks, held, { signal, sinceMs, meanwhile: () => agent.readAhead(row) });
    if (done !== null) return done.value;
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
  const { log } = agent;
  if (ref.archiveId !== undefined) throw (await agent.locate(ref)) === null ? sessionNotFound(ref) : archivedError(ref);
  for (;;) {
    const current = await agent.locate(ref);
    if (current === null && ifRevision !== null) throw revisionConflict(null);
    if (current === null) prepareAgentFolder(context, ref);
    agent.prepareWriting();
    const others = current === null ? [] : [current.sessionId];
    const names = current === null ? [] : [current.fileName];
    const { isOpenclaws } = agent.place;
    const saved = await context.locks.hold(agent.place.locksFor([entry.sessionId, ...others], names, true), () => {
      log.refreshHeld();
      const found = log.find(ref.key, undefined);
      if (found?.sessionId !== current?.sessionId || agent.place.isOpenclaws !== isOpenclaws) return null;
      const now = found === null || scope.durability !== "disk" ? found : makeDurable(scope, found);
      const held = now === null ? null : agent.hold(now);
      // Records whose flush failed come first: an entry on the disk would say that they are there.
      if (scope.durability === "disk") held?.file.settleDoubt();
      const row = held?.row ?? now;
      // Whose changes cannot be decoded is at a revision that nobody knows.
      if (row !== null) entryOf(row);
      if ((row?.revision ?? null) !== ifRevision) throw revisionConflict(row?.revision ?? null);
      const isOfSession = row?.sessionId === entry.sessionId;
      const next = isOfSession ? saveEntry(scope, row, entry) : createSession(scope, ref, entry, row, beganAtMs);
      return afterCommit(agent.folder.agent, () => agent.state(next));
    });
    if (saved !== null) return saved;
  }
}

function archivedError(ref: SessionRef): ThroughlineError {
  return refused("SESSION_ARCHIVED", "The session is archived and takes no writes.", { ...ref });
}

function revisionConflict(revision: number | null): ThroughlineError {
  return refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
}
