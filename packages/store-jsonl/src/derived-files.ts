import { setTimeout as pause } from "node:timers/promises";
import { createFinding } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { fileError } from "./file-work.ts";
import { createSlices } from "./slices.ts";
import type { SeenSession } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

/** Another program may write sessions.json as often as it likes; then it is tried again later. */
const maxAttempts = 5;

/** So often a damaged sessions.json that somebody may still be writing is looked at again. */
const settlingMs = 100;

/** What is longer Node takes for a millisecond. */
const maxTimerMs = 2 ** 31 - 1;

interface Waiting {
  /** Something was purged: what is derived must not keep it. */
  isPurged: boolean;
  /** Sessions whose transcript was written to. */
  readonly written: Set<string>;
}

/** The most sessions that only the log knows which are read here; the next list reads the others. */
const maxLooks = 64;

/**
 * What may lag behind: entry patches on their way from the transcripts to the entries log, sessions.json and the index.
 * All can be made again from what is durable, so a failure here is a finding and no failed write.
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
   * Marks the session in the index as being written to, once until the index is up to date. If this process dies
   * before, the next list reads the transcript.
   */
  announce(agent: AgentSessionFiles, sessionId: string): void {
    const { written } = this.#waitingOf(agent);
    if (written.has(sessionId)) return;
    written.add(sessionId);
    agent.index.mark(sessionId, this.#writer, this.#context.clock.nowMs());
  }

  /** Soon, and at the latest when the store is closed. */
  schedule(agent: AgentSessionFiles): void {
    this.#waitingOf(agent);
    const delayMs = Math.min(this.#context.derivedDelayMs, maxTimerMs);
    this.#timer ??= setTimeout(() => void this.flush(), delayMs).unref();
  }

  /** Something is gone for good: now from here too. Never rejects. */
  purge(agent: AgentSessionFiles): Promise<void> {
    this.#waitingOf(agent).isPurged = true;
    return this.flush();
  }

  /**
   * Rebuilds sessions.json and the index; a damaged sessions.json is kept. Returns the paths of those that are kept.
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
    const { folder, foreign, log, view } = agent;
    if (!agent.exists) return [];
    agent.prepareWriting();
    await foreign.take();
    while (view.isSettling) await pause(settlingMs);
    await this.#flushAgent(agent, new Set(), false);
    const isIndexed = await this.#rebuildIndex(agent);
    const isViewed = view.isWanted(() => log.activeCount()) && view.look() !== "";
    return [...(isViewed ? [folder.sessionsJson] : []), ...(isIndexed ? [folder.index] : [])];
  }

  /** Never rejects. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#running = this.#running.then(() => this.#flushAll());
    return this.#running;
  }

  /** The last `flush`: what could not be done now is for whoever opens the store next. Never rejects. */
  async close(): Promise<void> {
    await this.flush();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  async #flushAll(): Promise<void> {
    const waiting = [...this.#waiting];
    // What comes meanwhile is for the next time, also what could not be done now.
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
    await this.#payDebts(agent);
    await this.#writeView(agent, isPurged || agent.foreign.hasFinishedPurge);
    agent.foreign.hasFinishedPurge = false;
    // Before the index, which knows the log by its identity.
    if (agent.log.isLong) await this.#context.locks.hold([agent.folder.entriesLock], () => agent.log.compact());
    this.#writeIndex(agent, written);
  }

  #waitingOf(agent: AgentSessionFiles): Waiting {
    const waiting: Waiting = this.#waiting.get(agent) ?? { written: new Set(), isPurged: false };
    this.#waiting.set(agent, waiting);
    return waiting;
  }

  /** The lines are flushed too: until then a power cut and another program together could lose an entry. */
  async #payDebts(agent: AgentSessionFiles): Promise<void> {
    const { folder, log, redo } = agent;
    let isWritten = false;
    for (const sessionId of redo.debts) {
      const pay = (): void => {
        log.refreshHeld();
        const row = log.row(sessionId);
        if (row === null) redo.forget(sessionId);
        else if (redo.pay(log, agent.look(row).folded)) isWritten = true;
      };
      await this.#context.locks.hold([folder.sessionLock(sessionId), folder.entriesLock], pay);
    }
    if (isWritten) await log.flushed();
  }

  async #writeView(agent: AgentSessionFiles, isPurged: boolean): Promise<void> {
    if (!agent.exists) return;
    const { locks } = this.#context;
    const isStale = isPurged && agent.view.isOurs;
    // One that was being made meanwhile is made again.
    if (isPurged) await locks.hold(agent.place.viewLocks(), () => agent.view.sweep(Infinity));
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      await agent.foreign.takeView();
      if (!isStale && !agent.view.isWanted(() => agent.log.activeCount())) return;
      agent.log.refresh();
      const rows = await agent.log.allInSlices();
      const written = await agent.view.publish(rows.values(), agent.known, {
        isTaken: (seenAs) => agent.foreign.isViewTaken(seenAs),
        underLock: (commit) => locks.hold(agent.place.viewLocks(), commit),
        isPurged: isStale,
      });
      if (written !== null) return agent.foreign.noteView(written.seenAs);
    }
    this.schedule(agent);
  }

  /** From every transcript. False where no index is kept. */
  async #rebuildIndex(agent: AgentSessionFiles): Promise<boolean> {
    const slices = createSlices();
    agent.forgetIndexed();
    const seen: SeenSession[] = [];
    for (const row of agent.log.all().values().toArray()) {
      const one = agent.lookPast(row);
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
    const isWritten = agent.updateIndex(rows.map((row) => agent.lookPast(row)).filter((seen) => seen !== null));
    // Marks stay where the index could not be brought up to date: then they are all that tells of the writes.
    if (isWritten) agent.index.unmark(written, this.#writer);
  }
}
