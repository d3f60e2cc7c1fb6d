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

export type AppendQueueOptions = Pick<AppendBatchOptions, "context" | "announce">;

/** The queues of the sessions that are being appended to. */
export class AppendQueues {
  readonly #options: AppendQueueOptions;
  readonly #queues: Map<string, AppendQueue> = new Map();

  constructor(options: AppendQueueOptions) {
    this.#options = options;
  }

  of(agent: AgentSessionFiles, ref: SessionRef): AppendQueue {
    const name = `${ref.namespace}/${ref.agentId}/${ref.key}`;
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const queue = new AppendQueue(this.#options, agent, ref, () => void this.#queues.delete(name));
    this.#queues.set(name, queue);
    return queue;
  }
}

/**
 * The appends to one address that this process waits to write, in the order they came. Whoever gets the session's lock
 * writes all that wait by then, in one write with one flush.
 */
class AppendQueue {
  readonly #options: AppendQueueOptions;
  readonly #agent: AgentSessionFiles;
  readonly #ref: SessionRef;
  readonly #onIdle: () => void;
  readonly #waiting: WaitingLine<WaitingAppend> = new WaitingLine();
  #count = 0;
  #isRunning = false;
  #abandoned: AbortController | null = null;

  /** `onIdle`: nothing waits any more. */
  constructor(options: AppendQueueOptions, agent: AgentSessionFiles, ref: SessionRef, onIdle: () => void) {
    this.#options = options;
    this.#agent = agent;
    this.#ref = ref;
    this.#onIdle = onIdle;
  }

  /** @throws {ThroughlineError} what the contract says of `append`; ABORTED while it waits */
  append(request: AppendRequest): Promise<WrittenAppend> {
    return new Promise((resolve, reject) => {
      const { signal } = request.options;
      const nth = ++this.#count;
      const waiting: WaitingAppend = { request, sinceMs: monotonicMs(), nth, isAlone: false, resolve, reject };
      if (signal !== undefined) this.#abortWith(signal, waiting);
      this.#waiting.add(waiting);
      if (!this.#isRunning) void this.#run();
    });
  }

  #abortWith(signal: AbortSignal, waiting: WaitingAppend): void {
    const { resolve, reject } = waiting;
    const abort = (): void => {
      // Once it is being written there is nothing to give up.
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

  /** Never rejects. */
  async #run(): Promise<void> {
    const { context } = this.#options;
    this.#isRunning = true;
    // Appends that are asked for in the same turn of the loop go together.
    await Promise.resolve();
    let startedMs = monotonicMs();
    for (let { first } = this.#waiting; first !== undefined; { first } = this.#waiting) {
      const lastNth = this.#count;
      try {
        const batch = this.#batchOf(first);
        const scope = { context, agent: this.#agent, durability: first.request.durability };
        await underLocks(scope, this.#ref, batch, batch.write);
      } catch (error) {
        if (await context.room.waitsAfter(error, startedMs, this.#waiting.length)) continue;
        this.#refuse(error, first, lastNth);
      }
      startedMs = monotonicMs();
    }
    this.#isRunning = false;
    this.#onIdle();
  }

  #batchOf(first: WaitingAppend): AppendBatch {
    this.#abandoned = first.request.options.signal === undefined ? null : new AbortController();
    const parts = { agent: this.#agent, ref: this.#ref, waiting: this.#waiting, signal: this.#abandoned?.signal };
    return new AppendBatch({ ...this.#options, ...parts }, first);
  }

  /** Nothing was written: the session is gone, or the wait for its lock took too long or was given up. */
  #refuse(error: unknown, first: WaitingAppend, lastNth: number): void {
    // Who came later waits on, to its own deadline and for its own signal.
    const isOfFirst = hasErrorCode(error, "STORE_LOCKED", "ABORTED");
    const isRefused = (waiting: WaitingAppend): boolean =>
      waiting.nth <= lastNth && (!isOfFirst || isOverdue(waiting, this.#options.context));
    const refused = this.#waiting.takeOut((waiting) => waiting === first || isRefused(waiting));
    for (const { reject } of refused) reject(error);
  }
}
