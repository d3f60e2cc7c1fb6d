import { setTimeout as pause } from "node:timers/promises";
import { createFinding } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { fileError } from "./file-work.ts";
import { createSlices } from "./slices.ts";
import type { SessionSnapshot } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Limits the attempts, because another program may rewrite sessions.json without end. The write is then scheduled
 * again.
 */
const maxAttempts = 5;

/** A damaged sessions.json is read again after this time, because another program may still be writing it. */
const settlingMs = 100;

/** Node fires a timer with a longer delay after 1 ms. */
const maxTimerMs = 2 ** 31 - 1;

interface Waiting {
  /** Is true when a session was purged: derived files must not keep it. */
  isPurged: boolean;
  readonly written: Set<string>;
}

/** Limits how many sessions that only the log has are read here. The next list reads the rest. */
const maxLooks = 64;

/**
 * Writes what may lag: entry patches from the transcripts into the entries log, sessions.json, and the index. All of it
 * can be rebuilt from durable data, so a failure here is a finding and not a failed write.
 */
export class DerivedFiles {
  readonly #context: StoreContext;
  readonly #waiting: Map<AgentSessionFiles, Waiting> = new Map();
  readonly #writer: string;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(context: StoreContext) {
    this.#context = context;
    this.#writer = `${context.random.uint32().toString(36)}${context.random.uint32().toString(36)}`;
  }

  /**
   * Marks the session in the index before it is written to, once per index update. If this process dies before the
   * update, the next list reads the transcript.
   */
  announce(agent: AgentSessionFiles, sessionId: string): void {
    const { written } = this.#waitingOf(agent);
    if (written.has(sessionId)) return;
    written.add(sessionId);
    agent.index.mark(sessionId, this.#writer, this.#context.clock.nowMs());
  }

  /** Schedules a flush, which runs at the latest when the store is closed. */
  schedule(agent: AgentSessionFiles): void {
    this.#waitingOf(agent);
    const delayMs = Math.min(this.#context.derivedDelayMs, maxTimerMs);
    this.#timer ??= setTimeout(() => void this.flush(), delayMs).unref();
  }

  /** Removes purged content from the derived files too. Never rejects. */
  purge(agent: AgentSessionFiles): Promise<void> {
    this.#waitingOf(agent).isPurged = true;
    return this.flush();
  }

  /**
   * Rebuilds sessions.json and the index, and keeps a copy of a damaged sessions.json. Returns the paths of the files
   * that exist afterwards.
   */
  rebuild(agent: AgentSessionFiles): Promise<readonly string[]> {
    const rebuilt = this.#running.then(() => this.#rebuildAgent(agent));
    this.#running = rebuilt.then(
      () => undefined,
      () => undefined,
    );
    return rebuilt;
  }

  async #rebuildAgent(agent: AgentSessionFiles): Promise<readonly string[]> {
    const { adoption, folder, log, mirror } = agent;
    if (!agent.exists) return [];
    agent.prepareWriting();
    await adoption.adopt();
    while (mirror.isSettling) await pause(settlingMs);
    await this.#flushAgent(agent, new Set(), false);
    const isIndexed = await this.#rebuildIndex(agent);
    const isMirrored = mirror.isWanted(log.activeCount) && mirror.look() !== "";
    return [...(isMirrored ? [folder.sessionsJson] : []), ...(isIndexed ? [folder.index] : [])];
  }

  /** Never rejects, because each failure becomes a finding. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#running = this.#running.then(() => this.#flushAll());
    return this.#running;
  }

  /** Flushes a last time. The next process that opens the store does what fails here. Never rejects. */
  async close(): Promise<void> {
    await this.flush();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  async #flushAll(): Promise<void> {
    const waiting = [...this.#waiting];
    // Cleared before the loop, so that later changes and failed attempts are queued for the next flush.
    this.#waiting.clear();
    for (const [agent, { written, isPurged }] of waiting) {
      try {
        await this.#context.room.patiently(
          () => this.#flushAgent(agent, written, isPurged),
          () => 0,
        );
      } catch (error) {
        this.#waitingOf(agent).isPurged ||= isPurged;
        const path = agent.folder.own;
        const finding = createFinding(
          "FILE_UNREADABLE",
          `What is derived could not be written: ${fileError(error, path).message}`,
          { path },
        );
        this.#context.emit({ name: "finding", ref: null, finding });
      }
    }
  }

  async #flushAgent(agent: AgentSessionFiles, written: ReadonlySet<string>, isPurged: boolean): Promise<void> {
    await this.#redoPatches(agent);
    await this.#writeMirror(agent, isPurged || agent.adoption.hasFinishedPurge);
    agent.adoption.hasFinishedPurge = false;
    // This comes before the index update, because the index identifies the log by its file.
    if (agent.log.isLong) await this.#context.locks.hold([agent.folder.entriesLock], () => agent.log.compact());
    this.#writeIndex(agent, written);
  }

  #waitingOf(agent: AgentSessionFiles): Waiting {
    const waiting: Waiting = this.#waiting.get(agent) ?? { written: new Set(), isPurged: false };
    this.#waiting.set(agent, waiting);
    return waiting;
  }

  /**
   * Redoes entry patches and flushes the log. Without the flush, a power cut and a truncation by another program could
   * together lose an entry.
   */
  async #redoPatches(agent: AgentSessionFiles): Promise<void> {
    const { folder, log, redo } = agent;
    let isWritten = false;
    for (const sessionId of redo.pending) {
      const pay = (): void => {
        log.refreshHeld();
        const row = log.row(sessionId);
        if (row === null) redo.forget(sessionId);
        else if (redo.write(log, agent.snapshot(row).folded)) isWritten = true;
      };
      await this.#context.locks.hold([folder.sessionLock(sessionId), folder.entriesLock], pay);
    }
    if (isWritten) await log.flushed();
  }

  async #writeMirror(agent: AgentSessionFiles, isPurged: boolean): Promise<void> {
    if (!agent.exists) return;
    const { locks } = this.#context;
    const isStale = isPurged && agent.mirror.isOurs;
    // An unfinished new version may contain the purged session, so it is removed and written again.
    const paths = [agent.folder.entriesLock];
    if (isPurged) await locks.hold(paths, () => agent.mirror.sweep(Infinity));
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      await agent.adoption.adoptEntries();
      if (!isStale && !agent.mirror.isWanted(agent.log.activeCount)) return;
      agent.log.refresh();
      const written = await agent.mirror.publish(agent.log.rows.values(), agent.known, {
        isTaken: (fingerprint) => agent.adoption.isMirrorTaken(fingerprint),
        underLock: (commit) => locks.hold(paths, commit),
        isPurged: isStale,
      });
      if (written !== null) return agent.adoption.noteMirror(written.fingerprint);
    }
    this.schedule(agent);
  }

  async #rebuildIndex(agent: AgentSessionFiles): Promise<boolean> {
    const slices = createSlices();
    agent.forgetIndexed();
    const seen: SessionSnapshot[] = [];
    for (const row of agent.log.rows.values().toArray()) {
      const one = agent.snapshotIfReadable(row);
      if (one !== null) seen.push(one);
      await slices.next();
    }
    return agent.updateIndex(seen) && this.#context.files.facts(agent.folder.index) !== null;
  }

  #writeIndex(agent: AgentSessionFiles, written: ReadonlySet<string>): void {
    if (!agent.exists) return;
    agent.index.look();
    agent.log.refresh();
    const others = [...agent.log.unindexed].slice(0, maxLooks);
    const rows = [...new Set([...written, ...others])].map((id) => agent.log.row(id)).filter((row) => row !== null);
    const isWritten = agent.updateIndex(
      rows.map((row) => agent.snapshotIfReadable(row)).filter((seen) => seen !== null),
    );
    // Marks stay when the index could not be updated, because only they tell that the sessions were written to.
    if (isWritten) agent.index.unmark(written, this.#writer);
  }
}
