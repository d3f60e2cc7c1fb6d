import { hasErrorCode, sessionRef, ThroughlineError, type SessionRef, type SessionStore } from "@throughline/core";
import { frameworkSessionKey } from "@throughline/foreign-formats/internal";
import { Thread, threadField, type ThreadOptions } from "./thread.ts";
import { checkpointIn, checkpointKey } from "./thread-records.ts";

/** Limits the threads whose logs stay in memory; the least recently used ones are dropped. */
const keptThreads = 100;
const pageSize = 200;

export interface ThreadsOptions extends Omit<ThreadOptions, "ref" | "threadId"> {
  readonly agentId?: string | undefined;
  readonly namespace?: string | undefined;
  readonly refOf?: ((threadId: string) => SessionRef) | undefined;
  readonly purge?: boolean | undefined;
}

export class Threads {
  readonly #options: ThreadsOptions;
  readonly #threads = new Map<string, Thread>();
  /** Holds the checkpoints of threads that this process deleted, so that an older run does not restore them. */
  readonly #deleted = new Map<string, Set<string>>();

  constructor(options: ThreadsOptions) {
    this.#options = options;
  }

  thread(threadId: string): Thread {
    const { store, onLoss, clock, random } = this.#options;
    const known = this.#threads.get(threadId);
    this.#threads.delete(threadId);
    const ports = { ...(clock === undefined ? {} : { clock }), ...(random === undefined ? {} : { random }) };
    const losses = onLoss === undefined ? {} : { onLoss };
    const thread = known ?? new Thread({ store, ref: this.#refOf(threadId), threadId, ...losses, ...ports });
    this.#threads.set(threadId, thread);
    for (const oldest of this.#threads.keys()) {
      if (this.#threads.size <= keptThreads) break;
      this.#threads.delete(oldest);
    }
    return thread;
  }

  async all(): Promise<readonly Thread[]> {
    const { store, agentId = "main", namespace = "" } = this.#options;
    const ids: string[] = [];
    let cursor: string | null = null;
    do {
      const from: { cursor?: string } = cursor === null ? {} : { cursor };
      const page = await store.list({ namespace, agentId, sort: "key", limit: pageSize, ...from });
      for (const { entry } of page.sessions) {
        const id = entry[threadField];
        if (typeof id === "string") ids.push(id);
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
    return ids.map((id) => this.thread(id));
  }

  async remove(threadId: string): Promise<void> {
    const { store, purge = false } = this.#options;
    const thread = this.thread(threadId);
    const { state } = await thread.view();
    if (state === null) return;
    const gone = this.#deleted.get(threadId) ?? new Set<string>();
    for (const key of thread.state.index.checkpoints.keys()) gone.add(key);
    this.#deleted.set(threadId, gone);
    this.#threads.delete(threadId);
    try {
      await store.remove(thread.log.ref, { purge });
    } catch (error) {
      // Another process removed the session first.
      if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    }
  }

  /**
   * Prevents a run that started before its thread was deleted from restoring the thread.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  async assertNotDeleted(thread: Thread, ns: string, parentId: string | null, id: string): Promise<void> {
    if (parentId === null || thread.state.index.checkpoint(ns, parentId) !== undefined) return;
    if (!(await this.#isDeleted(thread, checkpointKey(ns, parentId)))) return;
    // Later writes of this run to the rejected checkpoint must fail as well.
    this.#deleted.set(thread.id, (this.#deleted.get(thread.id) ?? new Set()).add(checkpointKey(ns, id)));
    throw deletedThread(thread.id);
  }

  /** Rejects writes of a run whose thread was deleted meanwhile. @throws {ThroughlineError} SESSION_NOT_FOUND */
  async assertWritable(thread: Thread, ns: string, checkpointId: string): Promise<void> {
    await thread.view();
    if (thread.state.index.checkpoint(ns, checkpointId) !== undefined) return;
    if (await this.#isDeleted(thread, checkpointKey(ns, checkpointId))) throw deletedThread(thread.id);
  }

  /**
   * Checks whether a checkpoint belonged to a deleted thread of this id. Another process may have deleted it, so
   * archived sessions are searched too.
   */
  async #isDeleted(thread: Thread, key: string): Promise<boolean> {
    if (this.#deleted.get(thread.id)?.has(key) === true) return true;
    const { store } = this.#options;
    const { namespace, agentId, key: keyPrefix } = thread.log.ref;
    const query = { namespace, agentId, keyPrefix, state: "archived", limit: pageSize } as const;
    let cursor: string | null = null;
    do {
      const from: { cursor?: string } = cursor === null ? {} : { cursor };
      const page = await store.list({ ...query, ...from });
      for (const { ref } of page.sessions)
        if (ref.key === keyPrefix && (await holdsCheckpoint(store, ref, key))) return true;
      cursor = page.nextCursor;
    } while (cursor !== null);
    return false;
  }

  #refOf(threadId: string): SessionRef {
    const { refOf, agentId = "main", namespace = "" } = this.#options;
    if (refOf !== undefined) return sessionRef(refOf(threadId));
    return frameworkSessionKey({ agentId, namespace, framework: "langgraph", id: threadId });
  }
}

async function holdsCheckpoint(store: SessionStore, ref: SessionRef, key: string): Promise<boolean> {
  for await (const { records } of store.read(ref, { order: "descending", payload: "source" }))
    for (const record of records) {
      const checkpoint = checkpointIn(record);
      if (checkpoint !== null && checkpointKey(checkpoint.ns, checkpoint.id) === key) return true;
    }
  return false;
}

function deletedThread(threadId: string): ThroughlineError {
  const message = `Thread ${JSON.stringify(threadId)} was deleted while a run was writing to it. The run stops.`;
  const remedy = "Start a new run to begin the thread again.";
  return new ThroughlineError("SESSION_NOT_FOUND", message, { outcome: "not-applied", remedy });
}
