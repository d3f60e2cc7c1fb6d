import type { Clock, SessionRef } from "@throughline/core";
import { abortedBefore, FifoLock } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";

/** Describes a session that a watch follows, with the state that a refresh compares. */
export interface Watched<State> {
  /** Identifies the session among all sessions that this handle follows. */
  readonly key: string;
  /** Holds the result of the last refresh, in the store's own terms. */
  readonly state: State;
}

/** States the position of a session when a watch of it begins. */
export interface WatchStart {
  /** Identifies the session among all sessions that this handle follows. */
  readonly key: string;
  /** States the seq of the newest record when the watch begins; 0 for an empty session. */
  readonly lastSeq: number;
}

/** Sets how often a hub refreshes, and how. */
export interface WatchHubOptions<State> {
  /** Measures the pauses between two refreshes. */
  readonly clock: Clock;
  /** Sets the pause between two refreshes while sessions change, in milliseconds. */
  readonly pollMs: number;
  /** Sets the pause between two refreshes after two seconds without a change, in milliseconds. @default `pollMs` */
  readonly idleMs?: number | undefined;
  /** Refreshes all watches at once, and returns the watches whose session may have changed. */
  look(watched: readonly Watched<State>[]): Iterable<Watched<State>> | Promise<Iterable<Watched<State>>>;
  /** Finds the sessions of watches that begin together; null for a session that does not exist. */
  start?(refs: readonly SessionRef[]): Promise<readonly (WatchStart | null)[]>;
  /** Limits the watches that read at the same time. @default 1 */
  readonly mostReads?: number | undefined;
  /** Sets how long temporary failures are retried before the watches end with the error. @default 30,000 ms */
  readonly timeoutMs?: number | undefined;
}

/** Wakes one watch. */
export interface WatchBell {
  /** Forgets earlier rings. Call it before the session is read. */
  reset(): void;
  /**
   * Resolves when the session may have changed since `reset`, and when the signal was aborted.
   * @throws {ThroughlineError} the error of a refresh that failed for longer than `timeoutMs` or for good, or of `end`
   */
  ring(): Promise<void>;
  /** Ends the watch. */
  end(): void;
}

/** Refreshes stay frequent for this long after the last change. */
const activeMs = 2000;
const mostStarts = 2000;

interface Starting {
  readonly ref: SessionRef;
  readonly signal: AbortSignal;
  resolve(start: WatchStart | null): void;
  reject(error: unknown): void;
}

/**
 * Shares one poll among all watches of a store handle. The poll stops when the last watch ends. A write of the handle
 * itself wakes the watches of that session at once. A failed refresh makes no watch read: the hub repeats the refresh,
 * and only a lasting error ends the watches.
 */
export class WatchHub<State> {
  readonly #options: WatchHubOptions<State>;
  readonly #bells = new Map<Watched<State>, Bell>();
  readonly #byKey = new Map<string, Set<Watched<State>>>();
  readonly #reads: FifoLock;
  readonly #ending = new AbortController();
  /** Caches the keys of `#bells`, until a watch is added or removed. */
  #all: readonly Watched<State>[] | null = null;
  #starting: Starting[] = [];
  #isStarting = false;
  #isRunning = false;
  #isNudged = false;
  #nudge: () => void = () => undefined;
  #quietMs = 0;

  constructor(options: WatchHubOptions<State>) {
    this.#options = options;
    this.#reads = new FifoLock(options.mostReads ?? 1);
  }

  /** Counts the watches. */
  get size(): number {
    return this.#bells.size;
  }

  /** States whether a read would begin at once. */
  get isFree(): boolean {
    return this.#reads.isFree;
  }

  /** Follows a session until `end` is called. The caller updates `state` after each read. */
  follow(key: string, state: State, signal: AbortSignal): WatchBell {
    const watched: Watched<State> = { key, state };
    const bell = new Bell();
    const wake = (): void => bell.wake();
    signal.addEventListener("abort", wake, { once: true });
    if (signal.aborted) wake();
    if (this.#ending.signal.aborted) bell.fail(this.#ending.signal.reason);
    this.#bells.set(watched, bell);
    this.#byKey.set(key, (this.#byKey.get(key) ?? new Set()).add(watched));
    this.#all = null;
    this.#quietMs = 0;
    if (!this.#isRunning) void this.#run();
    return {
      reset: () => bell.reset(),
      ring: () => bell.ring(),
      end: () => {
        signal.removeEventListener("abort", wake);
        this.#bells.delete(watched);
        this.#all = null;
        const others = this.#byKey.get(key);
        others?.delete(watched);
        if (others?.size === 0) this.#byKey.delete(key);
        if (this.#bells.size === 0) this.#nudge();
      },
    };
  }

  /**
   * Finds the session of a watch that begins, in one batch with all watches that begin at this time. Returns null when
   * the session does not exist.
   * @throws {ThroughlineError} ABORTED, and what `start` throws
   */
  begin(ref: SessionRef, signal: AbortSignal): Promise<WatchStart | null> {
    return new Promise((resolve, reject) => {
      this.#starting.push({ ref, signal, resolve, reject });
      if (!this.#isStarting) void this.#startAll();
    });
  }

  /**
   * Runs the read of one watch when it gets its turn, and repeats the read while it fails temporarily.
   * @throws {ThroughlineError} ABORTED, and what `work` throws
   */
  async read<Result>(work: () => Result | Promise<Result>, signal: AbortSignal): Promise<Result> {
    const leave = await this.#reads.enter(signal);
    try {
      return await this.#withRetries(work, signal);
    } finally {
      leave();
    }
  }

  /** Wakes the watches of a session that this handle has written to. */
  wake(key: string): void {
    const watched = this.#byKey.get(key);
    if (watched === undefined) return;
    this.#quietMs = 0;
    for (const each of watched) this.#bells.get(each)?.wake();
  }

  /** Refreshes at once after a change that names no session. */
  lookSoon(): void {
    this.#quietMs = 0;
    this.#isNudged = true;
    this.#nudge();
  }

  /** Ends every watch with the error, also watches that begin or wait for their turn. */
  end(error: ThroughlineError): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort(error);
    this.#failAll(error);
    this.#nudge();
  }

  #failAll(error: unknown): void {
    for (const bell of this.#bells.values()) bell.fail(error);
    this.#reads.fail(error);
    for (const { reject } of this.#starting.splice(0)) reject(error);
  }

  async #startAll(): Promise<void> {
    this.#isStarting = true;
    // The pause lets all watches that begin now join the batch.
    await pause(0);
    while (this.#starting.length > 0) {
      const batch = this.#starting.splice(0, mostStarts);
      const wanted = batch.filter(({ signal }) => !signal.aborted);
      for (const { signal, reject } of batch) if (signal.aborted) reject(abortedBefore("the watch began", signal));
      if (wanted.length === 0) continue;
      try {
        const starts = await this.#withRetries(
          async () => (await this.#options.start?.(wanted.map(({ ref }) => ref))) ?? [],
          null,
        );
        for (const [index, { resolve }] of wanted.entries()) resolve(starts[index] ?? null);
      } catch (error) {
        for (const { reject } of wanted) reject(error);
      }
    }
    this.#isStarting = false;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#bells.size > 0 && !this.#ending.signal.aborted) {
      await this.#wait();
      if (this.#bells.size === 0 || this.#ending.signal.aborted) break;
      this.#isNudged = false;
      try {
        const changed = await this.#withRetries(() => this.#look(), null);
        let isQuiet = true;
        for (const watched of changed) {
          isQuiet = false;
          this.#bells.get(watched)?.wake();
        }
        if (!isQuiet) this.#quietMs = 0;
      } catch (error) {
        this.#failAll(error);
      }
    }
    this.#isRunning = false;
  }

  #look(): Iterable<Watched<State>> | Promise<Iterable<Watched<State>>> {
    this.#all ??= [...this.#bells.keys()];
    return this.#all.length === 0 ? [] : this.#options.look(this.#all);
  }

  /** Repeats work that fails temporarily, with growing pauses, for as long as `timeoutMs`. */
  async #withRetries<Result>(work: () => Result | Promise<Result>, signal: AbortSignal | null): Promise<Result> {
    const { clock, timeoutMs = 30_000 } = this.#options;
    let failedMs = Infinity;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const nowMs = clock.nowMs();
        // A clock that is set back must not prolong the retries until the clock has caught up.
        failedMs = Math.min(failedMs, nowMs);
        const mayPass = ThroughlineError.isInstance(error) && error.retryable;
        if (!mayPass || nowMs - failedMs >= timeoutMs) throw error;
      }
      const ended = this.#ending.signal;
      const over = signal === null ? ended : AbortSignal.any([signal, ended]);
      await clock.sleep(Math.min(5000, 50 * 2 ** Math.min(attempt, 7)), over).catch(() => undefined);
      if (ended.aborted) throw ended.reason;
      if (signal?.aborted === true) throw abortedBefore("the session was read", signal);
    }
  }

  #wait(): Promise<void> {
    const { pollMs, idleMs = pollMs } = this.#options;
    const waitMs = this.#isNudged ? 0 : this.#quietMs < activeMs ? pollMs : idleMs;
    this.#quietMs += waitMs;
    return new Promise((resolve) => {
      let timer = setTimeout(resolve, waitMs);
      let isDue = waitMs === 0;
      // The timer still waits for a moment, so that one refresh serves all requests made now.
      this.#nudge = () => {
        if (isDue) return;
        isDue = true;
        clearTimeout(timer);
        timer = setTimeout(resolve, 0);
      };
    });
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

class Bell {
  #wasRung = false;
  #failure: { readonly error: unknown } | null = null;
  #waiting: { resolve(): void; reject(error: unknown): void } | null = null;

  wake(): void {
    this.#wasRung = true;
    this.#waiting?.resolve();
    this.#waiting = null;
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#waiting?.reject(error);
    this.#waiting = null;
  }

  reset(): void {
    this.#wasRung = false;
  }

  ring(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== null) reject(this.#failure.error);
      else if (this.#wasRung) resolve();
      else this.#waiting = { resolve, reject };
    });
  }
}
