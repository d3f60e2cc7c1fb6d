import { createFinding } from "@throughline/core/internal";
import { type Finding, hasErrorCode } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { afterCommit, fileError, flushFolder, outcomeUnknown } from "./file-work.ts";
import { removeCopies, removeTranscripts } from "./session-copies.ts";
import type { Files } from "./files.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/** A purge takes less; who is about it for longer is stopped, or has its own disk to wait for. */
const finishWaitMs = 100;

/** Purges whose line is in the log: their bytes, and the log and index that still name them, have to go. */
export class Purges {
  /** What is derived may still hold what was purged. */
  hasFinished = false;
  readonly #context: StoreContext;
  readonly #agent: AgentSessionFiles;
  #running: Promise<void> = Promise.resolve();
  /** Begins when the running one has ended. */
  #next: Promise<void> | null = null;

  constructor(context: StoreContext, agent: AgentSessionFiles) {
    this.#context = context;
    this.#agent = agent;
  }

  /**
   * Finishes every purge that is committed, this handle's and those that were interrupted. Calls that come while one runs
   * share the next one: the log is written again once for all of them.
   * @throws {ThroughlineError} with `outcome: "unknown"`; whoever comes next finishes it
   */
  finish(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      const finished = this.#finishAll(undefined).catch((error: unknown) => {
        throw outcomeUnknown(error, this.#agent.folder.sessions);
      });
      this.#running = finished.catch(() => undefined);
      return finished;
    });
    return this.#next;
  }

  /** Finishes those that were interrupted. Who only reads does not fail for it, nor wait for a process that is stopped. */
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
    const { folder, log, place } = this.#agent;
    const removed = [...log.removed];
    if (removed.length === 0 || !place.isWritable) return;
    const paths = [folder.entriesLock, ...removed.map((name) => folder.sessionLock(name))];
    const finish = (): void => {
      log.refreshHeld();
      // One of them may be there again, or another process was faster.
      const left = removed.filter((name) => log.removed.has(name));
      if (left.length === 0) return;
      // Whoever began it may have been killed before its line was on the disk, and the bytes go only after that.
      log.flushNow();
      this.#remove(left);
      this.hasFinished = true;
    };
    await this.#context.locks.hold(paths, finish, { signal });
  }

  /** What comes after the commit. `removed`: ids of sessions, and names of their transcripts. */
  #remove(removed: readonly string[]): void {
    const { files } = this.#context;
    const agent = this.#agent;
    for (const sessionId of removed) agent.forget(sessionId);
    agent.partials.removeAll(new Set(removed));
    removeTranscripts(files, agent.folder, new Set(removed.map((name) => `${name}.jsonl`)));
    flushFolder(files, agent.folder.sessions);
    // Those that were committed meanwhile stay purges.
    agent.log.rewrite([...agent.log.removed].filter((name) => !removed.includes(name)));
    agent.index.scrub(agent.updateIndex([]));
    flushFolder(files, agent.folder.own);
  }
}

/** Commits a purge, under the locks of the session and of the entries. `Purges.finish` does what is left. */
export function commitPurge(
  { context, agent }: { readonly context: StoreContext; readonly agent: AgentSessionFiles },
  row: SessionRow,
): void {
  const ref = agent.refOf(row);
  const removed = removedNames(agent, row);
  agent.log.write({ op: "remove", rows: [], removed });
  agent.log.flushNow();
  afterCommit(agent.folder.sessions, () => removeOddlyNamed(context.files, agent, row, removed));
  context.emit({ name: "session-removed", ref, sessionId: row.sessionId });
}

/**
 * The session's id, and what its transcript is called where that is something else: a purge that is interrupted is
 * finished by this alone. Not a name that is the id of another session.
 */
function removedNames(agent: AgentSessionFiles, row: SessionRow): readonly string[] {
  const name = baseOf(row.fileName);
  return name === row.sessionId || agent.log.twinOf(name) !== null ? [row.sessionId] : [row.sessionId, name];
}

/** Deletes transcripts of the session that are called by the id of another: whose archived forms are the other's. */
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

/** The name of a transcript as an active one. */
export function activeFileName({ fileName }: Pick<SessionRow, "fileName">): string {
  const at = fileName.search(/\.jsonl\.(?:reset|deleted)\./);
  return at === -1 ? fileName : fileName.slice(0, at + ".jsonl".length);
}
