import { createFinding } from "@throughline/core";
import type { AgentSessions } from "./agent-sessions.ts";
import { fileError } from "./file-work.ts";
import type { StoreContext } from "./store-context.ts";

const delayMs = 1000;

/**
 * What may lag behind: entry patches on their way from the transcripts to the entries log, and sessions.json. Both can
 * be made again from what is durable, so a failure here is a finding and no failed write.
 */
export class DerivedFiles {
  readonly #context: StoreContext;
  readonly #waiting: Map<AgentSessions, Set<string>> = new Map();
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(context: StoreContext) {
    this.#context = context;
  }

  /** Soon, and at the latest when the store is closed. */
  schedule(agent: AgentSessions, patchedSessionId: string | null): void {
    const patched = this.#waiting.get(agent) ?? new Set();
    if (patchedSessionId !== null) patched.add(patchedSessionId);
    this.#waiting.set(agent, patched);
    this.#timer ??= setTimeout(() => void this.flush(), delayMs).unref();
  }

  /** Never rejects. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#running = this.#running.then(() => this.#flushAll());
    return this.#running;
  }

  async #flushAll(): Promise<void> {
    for (const [agent, patched] of this.#waiting) {
      this.#waiting.delete(agent);
      try {
        for (const sessionId of patched) await this.#catchUp(agent, sessionId);
        await this.#writeView(agent);
      } catch (error) {
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

  async #catchUp(agent: AgentSessions, sessionId: string): Promise<void> {
    const { folder, log } = agent;
    await this.#context.locks.hold([folder.sessionLock(sessionId), folder.entriesLock], () => {
      log.refresh();
      const row = log.rows.get(sessionId);
      const held = row === undefined ? null : agent.hold(row);
      if (held !== null && held.row.revision !== row?.revision) log.write({ op: "catch-up", rows: [held.row] });
    });
  }

  async #writeView(agent: AgentSessions): Promise<void> {
    if (!agent.exists) return;
    await agent.takeViewChanges();
    await this.#context.locks.hold([agent.folder.entriesLock], () => {
      agent.log.refresh();
      agent.view.write(agent.knownRows());
    });
  }
}
