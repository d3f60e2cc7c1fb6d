import type { Clock, SessionRef } from "@throughline/core";
import { abortedBefore, TurnQueue } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";

/** A session that a watch follows, with the state that a look compares. */
export interface Watched<State> {
  /** Names the session among all that this handle follows. */
  readonly key: string;
  /** What the last look found, in the store's own terms. */
  readonly state: State;
}

/** Where a session stands when a watch of it begins. */
export interface WatchStart {
  /** Names the session among all that this handle follows. */
  readonly key: string;
  /** The newest record when the watch begins; 0 when empty. */
  readonly lastSeq: number;
}

/** How often a hub looks, and how. */
export interface WatchHubOptions<State> {
  /** Measures the pauses between two looks. */
  readonly clock: Clock;
  /** Between two looks while something happens, in milliseconds. */
  readonly pollMs: number;
  /** Between two looks when nothing happened for two seconds. @default `pollMs` */
  readonly idleMs?: number;
  /** One look for all watches: gives those whose session may have changed. */
  look(watched: readonly Watched<State>[]): Iterable<Watched<State>> | Promise<Iterable<Watched<State>>>;
  /** Finds the sessions of watches that begin together; null for a session that is not there. */
  start?(refs: readonly SessionRef[]): Promise<readonly (WatchStart | null)[]>;
  /** How many watches read at the same time. @default 1 */
  readonly mostReads?: number;
  /** How long failures that may pass are retried before the watches end with the error. @default 30,000 ms */
  readonly patienceMs?: number;
}

/** Wakes one watch. */
export interface WatchBell {
  /** Forgets earlier rings. Call it before the session is read. */
  reset(): void;
  /**
   * Resolves when the session may have changed since `reset`, and when the signal was aborted.
   * @throws {ThroughlineError} the error of a look that failed for longer than `patienceMs` or for good, or of `end`
   */
  ring(): Promise<void>;
  /** Ends the watch. */
  end(): void;
}

/** How long looks stay frequent after the last change. */
const activeMs = 2000;
/** The most watches that begin with one statement. */
const mostStarts = 2000;

interface Starting {
  readonly ref: SessionRef;
  readonly signal: AbortSignal;
  resolve(start: WatchStart | null): void;
  reject(error: unknown): void;
}

/**
 * All watches of one store handle share one poll. It stops when the last watch ends. A write of the handle itself wakes the
 * watches of that session at once. No watch reads because a look failed: the hub repeats the look, and only an error that
 * stays ends the watches.
 */
export class WatchHub<State> {
  readonly #options: WatchHubOptions<State>;
  readonly #bells = new Map<Watched<State>, Bell>();
  readonly #byKey = new Map<string, Set<Watched<State>>>();
  readonly #reads: TurnQueue;
  readonly #ending = new AbortController();
  /** All of `#bells`, until one comes or goes. */
  #all: readonly Watched<State>[] | null = null;
  #starting: Starting[] = [];
  #isStarting = false;
  #isRunning = false;
  #isNudged = false;
  #nudge: () => void = () => undefined;
  #quietMs = 0;

  constructor(options: WatchHubOptions<State>) {
    this.#options = options;
    this.#reads = new TurnQueue(options.mostReads ?? 1);
  }

  /** The number of watches. */
  get size(): number {
    return this.#bells.size;
  }

  /** Whether a read would begin at once. */
  get isFree(): boolean {
    return this.#reads.isFree;
  }

  /** Follows a session until `end`. The caller updates `state` after each read. */
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
   * Finds the session of a watch that begins, in one batch with all that begin at this time. Null: it is not there.
   * @throws {ThroughlineError} ABORTED, and what `start` throws
   */
  begin(ref: SessionRef, signal: AbortSignal): Promise<WatchStart | null> {
    return new Promise((resolve, reject) => {
      this.#starting.push({ ref, signal, resolve, reject });
      if (!this.#isStarting) void this.#startAll();
    });
  }

  /**
   * Runs the read of one watch when it has its turn, and again while it fails for a reason that may pass.
   * @throws {ThroughlineError} ABORTED, and what `work` throws
   */
  async read<Result>(work: () => Result | Promise<Result>, signal: AbortSignal): Promise<Result> {
    const leave = await this.#reads.enter(signal);
    try {
      return await this.#patiently(work, signal);
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

  /** Looks at once: something was changed that no session is named for. */
  lookSoon(): void {
    this.#quietMs = 0;
    this.#isNudged = true;
    this.#nudge();
  }

  /** Ends every watch with the error, those that begin or wait for their turn too. */
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
    // Until all that begin now have asked.
    await pause(0);
    while (this.#starting.length > 0) {
      const batch = this.#starting.splice(0, mostStarts);
      const wanted = batch.filter(({ signal }) => !signal.aborted);
      for (const { signal, reject } of batch) if (signal.aborted) reject(abortedBefore("the watch began", signal));
      if (wanted.length === 0) continue;
      try {
        const starts = await this.#patiently(
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
        const changed = await this.#patiently(() => this.#look(), null);
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

  /** Repeats what fails for a reason that may pass, later each time, for as long as `patienceMs`. */
  async #patiently<Result>(work: () => Result | Promise<Result>, signal: AbortSignal | null): Promise<Result> {
    const { clock, patienceMs = 30_000 } = this.#options;
    let failedMs = Infinity;
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const nowMs = clock.nowMs();
        // A clock that is set back makes nobody wait until it has caught up.
        failedMs = Math.min(failedMs, nowMs);
        const mayPass = ThroughlineError.isInstance(error) && error.retryable;
        if (!mayPass || nowMs - failedMs >= patienceMs) throw error;
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
      // In a moment, so that one look serves all that ask for it now.
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
