import { setTimeout as pause } from "node:timers/promises";
import type { Durability, SessionRef, ThroughlineError } from "@throughline/core";
import { monotonicMs, refused, sessionNotFound } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { withFileErrors } from "./file-work.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { replaceLost } from "./lost-records.ts";
import { foreignLockError, isHeldByOthers, lockFileOf } from "./openclaw-lock.ts";
import { writeNewFile } from "./own-header.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { growingBytes } from "./transcript-findings.ts";

/** A write that is under way ends within this time, so the next attempt can read the whole line. */
const settlingMs = 20;
/** Limits how often a writer that writes without end is waited for. */
const maxSettlingLooks = 50;

export interface ChangeContext {
  readonly context: StoreContext;
  readonly agent: AgentSessionFiles;
  readonly durability: Durability;
}

type Lockable = Pick<SessionRow, "sessionId">;

/**
 * States which locks the work needs, and what must be read before. `Row` includes null if the key may have no session
 * yet.
 */
export interface LockWants<Row extends SessionRow | null> {
  /** Finds the session before each attempt, because it may change between attempts. */
  find(): Promise<Row> | Row;
  others?(): readonly Lockable[];
  /** Returns whether the lock of the entries log is needed too. @default false */
  needsEntries?(row: Row): boolean;
  /** Loads every record of the session, because some answers are far back. @default false */
  readonly isWhole?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly sinceMs?: number;
}

/** States why the work cannot run yet. `underLocks` removes the reason and tries again. */
export type NotReady =
  /** The key has another session now, or other locks are needed. */
  | "changed"
  /** Another program is in the middle of a line. */
  | "being written"
  /** Another program holds its lock file of the transcript. */
  | "locked by others"
  /** An older version created the session without a flush, and that needs the lock of the entries log. */
  | "unflushed";

export function isNotReady(value: unknown): value is NotReady {
  return typeof value === "string";
}

/** Counts the pauses for another program that is in the middle of a line. */
export interface LinePauses {
  /** States the size of a file that ended in an incomplete line, to see whether it grows. */
  halfBytes: number | null;
  count: number;
}

/**
 * Opens a session if it can be written now. Call it under its lock.
 * @throws {ThroughlineError} STORE_CORRUPT for a transcript that is gone
 */
export function openToWrite(
  { agent, context }: ChangeContext,
  row: SessionRow,
  { isWhole = false, pauses }: { readonly isWhole?: boolean; readonly pauses: LinePauses },
): OpenTranscript | NotReady {
  const held = agent.open(row, isWhole) ?? agent.throwGone(row);
  const { transcript, file, path } = held;
  if (transcript.options.isMixed && isHeldByOthers(context.files, lockFileOf(path))) return "locked by others";
  if (transcript.tail === null && !transcript.endsInHalf && transcript.lostCount <= 0 && pauses.count === 0)
    return held;
  const halfBytes = pauses.count < maxSettlingLooks ? growingBytes(transcript, file.facts) : pauses.halfBytes;
  if (halfBytes === pauses.halfBytes) return replaceLost(context, agent, held);
  pauses.halfBytes = halfBytes;
  pauses.count++;
  return halfBytes === null ? "changed" : "being written";
}

/**
 * Runs work on a session under its locks, after a refresh of the entries log. Work that is not ready is repeated once
 * the reason is removed. `work` is synchronous and gets the current row.
 * @throws {ThroughlineError} STORE_LOCKED, ABORTED, SESSION_NOT_FOUND, SESSION_ARCHIVED, and those of the work
 */
export async function underLocks<Row extends SessionRow | null, Result extends object>(
  scope: ChangeContext,
  ref: SessionRef,
  wants: LockWants<Row>,
  work: (row: Row) => Result | NotReady,
): Promise<Result> {
  const { agent, context } = scope;
  const { log, folder } = agent;
  const { isWhole = false, signal, sinceMs = monotonicMs() } = wants;
  let isOlder = false;
  for (;;) {
    const finding = wants.find();
    const row = finding instanceof Promise ? await finding : finding;
    const locked: readonly Lockable[] = [...(row === null ? [] : [row]), ...(wants.others?.() ?? [])];
    agent.prepareWriting();
    if (row !== null) {
      // The file is read before the lock is taken, so that no process waits for a long read.
      if (isWhole) agent.open(row, true);
      agent.readAhead(row);
    }
    const changesEntries = isOlder || wants.needsEntries?.(row) === true;
    const refreshAndWork = (): Result | NotReady => {
      // A refresh without the entries lock suffices, because other processes archive, rename and purge only under this
      // session's lock.
      if (changesEntries) log.refreshHeld();
      else log.refresh();
      const now = log.find(ref.key, ref.archiveId);
      // The session was reset, archived or renamed, so other locks are needed.
      if (now?.sessionId !== row?.sessionId) return "changed";
      if (now?.isUnflushed === true && !changesEntries) return "unflushed";
      // The cast is safe, because the session's id was just compared with that of `wants.find`.
      return work((now?.isUnflushed === true ? flushOlder(scope, now) : now) as Row);
    };
    const paths = changesEntries ? [folder.entriesLock] : [];
    for (const { sessionId } of locked) paths.push(folder.sessionLock(sessionId));
    const meanwhile = row === null ? undefined : (): void => agent.readAhead(row);
    const done = await context.locks.hold(paths, refreshAndWork, { signal, sinceMs, meanwhile });
    if (!isNotReady(done)) return done;
    if (done === "being written") await pause(settlingMs);
    else if (done === "unflushed") isOlder = true;
    else if (done === "locked by others" && row !== null) await waitForOthers(context, agent, row, sinceMs);
  }
}

/** @throws {ThroughlineError} STORE_LOCKED at the deadline, with the process that holds the lock file */
async function waitForOthers(
  { files, locks }: StoreContext,
  { folder }: AgentSessionFiles,
  { fileName }: SessionRow,
  sinceMs: number,
): Promise<void> {
  const waitedMs = monotonicMs() - sinceMs;
  if (waitedMs > locks.timeoutMs) throw foreignLockError(files, lockFileOf(folder.session(fileName)), waitedMs);
  await pause(settlingMs);
}

/**
 * Flushes a session that an older version created with a durability below `disk`. The flush covers its file, the file's
 * name and its line in the entries log. If a power cut took the transcript, no record of it was promised to survive,
 * and it starts empty.
 */
function flushOlder(scope: ChangeContext, row: SessionRow): SessionRow {
  const { agent, context } = scope;
  const { isUnflushed: _isUnflushed, ...flushed } = row;
  if (agent.open(row) === null) writeNewFile(context, agent, row);
  const held = agent.open(row);
  if (held !== null) {
    const { file, path } = held;
    file.flushNow();
    withFileErrors(agent.folder.sessions, () => agent.names.flush(path, file.facts?.identity ?? ""));
  }
  agent.log.flushNow();
  // If this line is lost, the flush is repeated, so no acknowledged data depend on it.
  agent.log.write({ op: "save", rows: [flushed] });
  return flushed;
}

/** @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED */
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

export function archivedError(ref: SessionRef): ThroughlineError {
  return refused("SESSION_ARCHIVED", "The session is archived and takes no writes.", { ...ref });
}
