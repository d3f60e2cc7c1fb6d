import { hasErrorCode, type SessionRef } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";
import type { AppendRequest } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import {
  AppendBatch,
  isOverdue,
  type AppendBatchOptions,
  type WaitingAppend,
  type WrittenAppend,
} from "./append-batch.ts";
import { lockAborted } from "./session-lock.ts";
import { underLocks } from "./under-locks.ts";
import { WaitingLine } from "./waiting-line.ts";

export type AppendQueueOptions = Pick<AppendBatchOptions, "context" | "derived">;

/** Limits the queues that are kept although no append waits in them. */
const maxQueues = 1024;

export class AppendQueues {
  readonly #options: AppendQueueOptions;
  readonly #queues: Map<string, AppendQueue> = new Map();

  constructor(options: AppendQueueOptions) {
    this.#options = options;
  }

  of(agent: AgentSessionFiles, ref: SessionRef): AppendQueue {
    const name = `${ref.namespace}/${ref.agentId}/${ref.archiveId ?? ""}/${ref.key}`;
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    if (this.#queues.size >= maxQueues) this.#forgetIdle();
    const queue = new AppendQueue(this.#options, agent, ref);
    this.#queues.set(name, queue);
    return queue;
  }

  #forgetIdle(): void {
    for (const [name, queue] of this.#queues) if (!queue.isRunning) this.#queues.delete(name);
  }
}

/**
 * Queues the appends of this process to one address, in order. The first append takes the session's lock and writes all
 * that wait by then, in one write with one flush.
 */
class AppendQueue {
  readonly #options: AppendQueueOptions;
  readonly #agent: AgentSessionFiles;
  readonly #ref: SessionRef;
  readonly #waiting: WaitingLine<WaitingAppend> = new WaitingLine();
  #count = 0;
  isRunning = false;
  #abandoned: AbortController | null = null;

  constructor(options: AppendQueueOptions, agent: AgentSessionFiles, ref: SessionRef) {
    this.#options = options;
    this.#agent = agent;
    this.#ref = ref;
  }

  /** @throws {ThroughlineError} the errors of the contract's `append`; ABORTED while it waits */
  append(request: AppendRequest, fileIds: readonly string[]): Promise<WrittenAppend> {
    return new Promise((resolve, reject) => {
      const { signal } = request.options;
      const nth = ++this.#count;
      const { prepared, keyed, options, durability } = request;
      let needsWhole = keyed !== null && options.isNewKey !== true;
      for (const { isIdGiven } of prepared) needsWhole ||= isIdGiven;
      const isForDisk = durability === "disk";
      const sinceMs = monotonicMs();
      const waiting: WaitingAppend = {
        request,
        fileIds,
        isForDisk,
        needsWhole,
        sinceMs,
        nth,
        isAlone: false,
        resolve,
        reject,
      };
      if (signal !== undefined) this.#abortWith(signal, waiting);
      this.#waiting.add(waiting);
      if (!this.isRunning) void this.#run();
    });
  }

  #abortWith(signal: AbortSignal, waiting: WaitingAppend): void {
    const { resolve, reject } = waiting;
    const abort = (): void => {
      // An append that is being written cannot be aborted.
      if (!this.#waiting.remove(waiting)) return;
      reject(lockAborted(signal));
      if (this.#waiting.isEmpty) this.#abandoned?.abort();
    };
    signal.addEventListener("abort", abort, { once: true });
    waiting.resolve = (written) => {
      signal.removeEventListener("abort", abort);
      resolve(written);
    };
    waiting.reject = (error) => {
      signal.removeEventListener("abort", abort);
      reject(error);
    };
  }

  /** Never rejects, because no caller awaits it. */
  async #run(): Promise<void> {
    const { context } = this.#options;
    this.isRunning = true;
    // This waits for the other appends of the same turn of the event loop, so that they share one write.
    await Promise.resolve();
    let startedMs = monotonicMs();
    for (let { first } = this.#waiting; first !== undefined; { first } = this.#waiting) {
      const lastNth = this.#count;
      try {
        const batch = this.#batchOf(first);
        await underLocks(batch.scope, this.#ref, batch, batch.write);
      } catch (error) {
        if (await context.room.waitsAfter(error, startedMs, this.#waiting.length)) continue;
        this.#refuse(error, first, lastNth);
      }
      startedMs = monotonicMs();
    }
    this.isRunning = false;
  }

  #batchOf(first: WaitingAppend): AppendBatch {
    const { options, durability } = first.request;
    this.#abandoned = options.signal === undefined ? null : new AbortController();
    const queue = { agent: this.#agent, ref: this.#ref, waiting: this.#waiting, signal: this.#abandoned?.signal };
    return new AppendBatch({ ...this.#options, ...queue, durability }, first);
  }

  /** Rejects appends when nothing was written: the session is gone, or the lock timed out or its wait was aborted. */
  #refuse(error: unknown, first: WaitingAppend, lastNth: number): void {
    // Later appends keep waiting, because they have their own deadline and signal.
    const isOfFirst = hasErrorCode(error, "STORE_LOCKED", "ABORTED");
    const isRefused = (waiting: WaitingAppend): boolean =>
      waiting.nth <= lastNth && (!isOfFirst || isOverdue(waiting, this.#options.context));
    const refused = this.#waiting.takeOut((waiting) => waiting === first || isRefused(waiting));
    for (const { reject } of refused) reject(error);
  }
}
