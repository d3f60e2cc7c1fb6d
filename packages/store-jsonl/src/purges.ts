import { createFinding } from "@throughline/core/internal";
import { type Finding, hasErrorCode } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { afterCommit, afterCommitAsync, fileError, flushFolder } from "./file-work.ts";
import { sourceDigestOf } from "./undecodable-entry.ts";
import { removeCopies, removeTranscripts } from "./session-copies.ts";
import type { Files } from "./files.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * A purge takes less time. A process that needs longer is stopped, or waits for its disk, so the caller does not wait
 * for it.
 */
const finishWaitMs = 100;

export class Purges {
  /** Is true when derived files may still contain a purged session. */
  hasFinished = false;
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  #running: Promise<void> = Promise.resolve();
  /** Starts when the running one has ended, because the running one may have read the log before the newest purge. */
  #next: Promise<void> | null = null;

  constructor(context: StoreContext, agent: AgentSessionFiles) {
    this.#context = context;
    this.#agent = agent;
  }

  /**
   * Finishes every committed purge, including interrupted ones. Calls during a run share the next run, so that the log
   * is rewritten once for all of them.
   * @throws {ThroughlineError} with `outcome: "unknown"`; the next operation finishes the purge
   */
  finish(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      const finished = afterCommitAsync(this.#agent.folder.sessions, this.#finishAll(undefined));
      this.#running = finished.catch(() => undefined);
      return finished;
    });
    return this.#next;
  }

  /**
   * Finishes interrupted purges. A read does not fail when that is impossible, and does not wait for a stopped process.
   */
  async finishInterrupted(onFinding: (finding: Finding) => void): Promise<void> {
    try {
      await this.#finishAll(AbortSignal.timeout(finishWaitMs));
    } catch (error) {
      if (hasErrorCode(error, "ABORTED", "STORE_LOCKED")) return;
      const path = this.#agent.folder.own;
      const message = `What is left of a purge could not be deleted: ${fileError(error, path).message}`;
      onFinding(createFinding("FILE_UNREADABLE", message, { path }));
    }
  }

  async #finishAll(signal: AbortSignal | undefined): Promise<void> {
    const { folder, log, location } = this.#agent;
    const removed = [...log.removed];
    if (removed.length === 0 || !location.isWritable) return;
    const paths = [folder.entriesLock, ...removed.map((name) => folder.sessionLock(name))];
    const finish = (): void => {
      log.refreshHeld();
      // A session may have been created again, or another process may have finished its purge.
      const left = removed.filter((name) => log.removed.has(name));
      if (left.length === 0) return;
      // The process that started the purge may have died before the flush. The bytes may go only after the line is on
      // the disk.
      log.flushNow();
      this.#remove(left);
      this.hasFinished = true;
    };
    await this.#context.locks.hold(paths, finish, { signal });
  }

  /** Deletes the bytes after the commit. `removed` holds session ids, and base names of transcripts. */
  #remove(removed: readonly string[]): void {
    const { files } = this.#context;
    const agent = this.#agent;
    for (const sessionId of removed) agent.forget(sessionId);
    agent.partials.removeAll(new Set(removed));
    agent.vectors.drop(removed);
    removeTranscripts(files, agent.folder, new Set(removed.map((name) => `${name}.jsonl`)));
    flushFolder(files, agent.folder.sessions);
    // Purges that were committed meanwhile stay in the log, because their bytes are still there.
    agent.log.rewrite([...agent.log.removed].filter((name) => !removed.includes(name)));
    agent.index.scrub(agent.updateIndex([]));
    flushFolder(files, agent.folder.own);
  }
}

/** Commits a purge. Call it under the locks of the session and of the entries log, and `Purges.finish` afterwards. */
export function commitPurge(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessionFiles },
  row: SessionRow,
): void {
  const ref = agent.refOf(row);
  const removed = removedNames(agent, row);
  const source = sourceDigestOf(row);
  const purged = source === null ? {} : { purged: [[source, context.clock.nowMs()] as const] };
  agent.log.write({ op: "remove", rows: [], removed, ...purged });
  agent.log.flushNow();
  afterCommit(agent.folder.sessions, () => removeOddlyNamed(context.files, agent, row, removed));
  context.emit({ name: "session-removed", ref, sessionId: row.sessionId });
}

/**
 * Returns the session's id, and the base name of its transcript if that differs. An interrupted purge is finished from
 * these names alone. A name that is another session's id is left out.
 */
function removedNames(agent: AgentSessionFiles, row: SessionRow): readonly string[] {
  const name = baseOf(row.fileName);
  return name === row.sessionId || agent.log.image.twinOf(name) !== null ? [row.sessionId] : [row.sessionId, name];
}

/**
 * Deletes transcripts that are named by another session's id. `Purges.finish` cannot, because archived files with that
 * name belong to the other session.
 */
function removeOddlyNamed(
  files: Files,
  { folder }: AgentSessionFiles,
  { fileName, formerFileName = fileName }: SessionRow,
  removed: readonly string[],
): void {
  const odd = new Set([fileName, formerFileName].filter((name) => !removed.includes(baseOf(name))));
  for (const name of odd) files.remove(folder.session(name));
  if (odd.size > 0) removeCopies(files, folder, odd);
}

function baseOf(fileName: string): string {
  return activeFileName({ fileName }).slice(0, -".jsonl".length);
}

export function activeFileName({ fileName }: Pick<SessionRow, "fileName">): string {
  const at = fileName.search(/\.jsonl\.(?:reset|deleted)\./);
  return at === -1 ? fileName : fileName.slice(0, at + ".jsonl".length);
}
