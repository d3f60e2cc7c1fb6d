import { setTimeout as pause } from "node:timers/promises";
import type { Durability, SessionRef, ThroughlineError } from "@throughline/core";
import { refused, sessionNotFound } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { withFileErrors } from "./file-work.ts";
import type { HeldSession } from "./held-session.ts";
import { replaceLost } from "./lost-records.ts";
import { writeNewFile } from "./own-header.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { growingBytes } from "./transcript-findings.ts";

/** A write that is under way is done by then. */
const settlingMs = 20;
/** Somebody who writes without end is not waited for. */
const maxSettlingLooks = 50;

/** What a change of a session needs to know. */
export interface ChangeContext {
  readonly context: StoreContext;
  readonly agent: AgentSessionFiles;
  readonly durability: Durability;
}

/** What there are locks for: a session, and its transcript where that may be OpenClaw's too. */
type Lockable = Pick<SessionRow, "sessionId"> & Partial<Pick<SessionRow, "fileName">>;

/** Which locks work needs, and what must be known before. `Row`: with null where the key may have no session yet. */
export interface LockWants<Row extends SessionRow | null> {
  /** The session that is meant, before each try. */
  find(): Promise<Row> | Row;
  /** Others that are locked with it. */
  others?(): readonly Lockable[];
  /** Whether the lock of the entries log is needed too. @default false */
  needsEntries?(row: Row): boolean;
  /** Every record of the session is needed: some answers lie far back. @default false */
  readonly isWhole?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Since when the caller has waited, by `monotonicMs`. */
  readonly sinceMs?: number;
}

/** Why work cannot be done under the locks yet. `underLocks` does what is missing and tries again. */
export type NotReady =
  /** The key has another session by now, or other locks are needed. */
  | "changed"
  /** Another program has archived or deleted the transcript. */
  | "moved away"
  /** Another program is in the middle of a line. */
  | "being written"
  /** Another program has written here: from now on its locks are taken too, and every process must hear of it. */
  | "shared"
  /** An older version made it without flushing it, and that needs the lock of the entries log. */
  | "unflushed";

export function isNotReady(value: unknown): value is NotReady {
  return typeof value === "string";
}

/** What is looked at under the locks, over all tries of one piece of work. */
export class Look {
  readonly #scope: ChangeContext;
  readonly #isWhole: boolean;
  /** sessions.json was asked what the key means, after the transcript was found moved away. */
  isAsked = false;
  /** How long a file was that ended in half a line. */
  #halfBytes: number | null = null;
  #looks = 0;

  constructor(scope: ChangeContext, isWhole: boolean) {
    this.#scope = scope;
    this.#isWhole = isWhole;
  }

  /**
   * The session with its transcript, if it can be written now. Under its lock.
   * @throws {ThroughlineError} STORE_CORRUPT for a transcript that is gone
   */
  session(row: SessionRow): HeldSession | NotReady {
    const { agent, context } = this.#scope;
    const held = this.isAsked ? agent.holdExisting(row, this.#isWhole) : agent.holdInPlace(row, this.#isWhole);
    if (held === null) return "moved away";
    const halfBytes = this.#looks < maxSettlingLooks ? growingBytes(held.transcript, held.file.facts) : this.#halfBytes;
    if (halfBytes !== this.#halfBytes) {
      this.#halfBytes = halfBytes;
      this.#looks++;
      return halfBytes === null ? "changed" : "being written";
    }
    if (!held.transcript.options.isMixed || agent.place.isOpenclaws) return replaceLost(context, agent, held);
    agent.place.markOpenclaw();
    return "shared";
  }
}

/**
 * Runs work on a session under its locks, after everything that others wrote to the entries log was read. Work that is
 * not ready is tried again after what it lacks was done. `work` is synchronous and gets the row as it is now.
 * @throws {ThroughlineError} STORE_LOCKED, ABORTED, SESSION_NOT_FOUND, SESSION_ARCHIVED, and those of the work
 */
export async function underLocks<Row extends SessionRow | null, Result extends object>(
  scope: ChangeContext,
  ref: SessionRef,
  wants: LockWants<Row>,
  work: (row: Row, look: Look) => Result | NotReady,
): Promise<Result> {
  const { agent, context } = scope;
  const { log, place, folder } = agent;
  const { isWhole = false, signal, sinceMs } = wants;
  const look = new Look(scope, isWhole);
  let isOlder = false;
  for (;;) {
    const finding = wants.find();
    const row = finding instanceof Promise ? await finding : finding;
    const locked: readonly Lockable[] = [...(row === null ? [] : [row]), ...(wants.others?.() ?? [])];
    agent.prepareWriting();
    if (row !== null) {
      // Before the lock is taken, so that nobody waits while a long file is read.
      if (isWhole) agent.hold(row, true);
      agent.readAhead(row);
    }
    const changesEntries = isOlder || wants.needsEntries?.(row) === true;
    const { isOpenclaws } = place;
    const lookAndWork = (): Result | NotReady => {
      // One look at the log: an archive, a rename or a purge of another process holds this lock too.
      if (changesEntries) log.refreshHeld();
      else log.refresh();
      const now = log.find(ref.key, ref.archiveId);
      // OpenClaw was met meanwhile, or the session was reset, archived or renamed: then others are to be locked.
      if (place.isOpenclaws !== isOpenclaws || now?.sessionId !== row?.sessionId) return "changed";
      if (now?.isUnflushed === true && !changesEntries) return "unflushed";
      // The session that was found, or none as then.
      return work((now?.isUnflushed === true ? flushOlder(scope, now) : now) as Row, look);
    };
    const paths = place.locksFor(
      locked.map(({ sessionId }) => sessionId),
      locked.flatMap(({ fileName = [] }) => fileName),
      changesEntries,
    );
    const meanwhile = row === null ? undefined : (): void => agent.readAhead(row);
    const done = await context.locks.hold(paths, lookAndWork, { signal, sinceMs, meanwhile });
    if (!isNotReady(done)) return done;
    if (done === "being written") await pause(settlingMs);
    else if (done === "unflushed") isOlder = true;
    else if (done === "moved away") {
      // Another program has reset or deleted the session: its index says what the key means now.
      await agent.foreign.takeView();
      look.isAsked = true;
    } else if (done === "shared") await context.locks.hold([folder.entriesLock], () => sayInLog(agent, ref));
  }
}

/** Changes the entries log without changing anything: every process looks then whether OpenClaw was met. */
function sayInLog({ log }: AgentSessionFiles, ref: SessionRef): void {
  log.refreshHeld();
  const row = log.find(ref.key, ref.archiveId);
  if (row !== null) log.write({ op: "save", rows: [row] });
}

/**
 * Flushes a session that an older version made with less than `disk`: its header and what follows, its file's name and
 * its line in the entries log. Where a power cut took the transcript, nothing of it was to survive, and it begins again.
 */
function flushOlder(scope: ChangeContext, row: SessionRow): SessionRow {
  const { agent, context } = scope;
  const { isUnflushed: _isUnflushed, ...flushed } = row;
  if (agent.hold(row) === null) writeNewFile(context, agent, row);
  // Another program may have moved or deleted the file; the session can still be archived and purged.
  const held = agent.holdInPlace(row);
  if (held !== null) {
    const { file, path } = held;
    file.flushNow();
    withFileErrors(agent.folder.sessions, () => agent.names.flush(path, file.facts?.identity ?? ""));
  }
  agent.log.flushNow();
  // Should this line be lost, all of it is done again: nothing that is acknowledged hangs on it.
  agent.log.write({ op: "save", rows: [flushed] });
  return flushed;
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

export function archivedError(ref: SessionRef): ThroughlineError {
  return refused("SESSION_ARCHIVED", "The session is archived and takes no writes.", { ...ref });
}
