/** A session that a watch follows, with the state that a look compares. */
export interface Watched<State> {
  /** Names the session among all that this handle follows. */
  readonly key: string;
  readonly state: State;
}

/** How often a hub looks, and how. */
export interface WatchHubOptions<State> {
  /** Between two looks while something happens, in milliseconds. */
  readonly pollMs: number;
  /** Between two looks when nothing happened for two seconds. @default `pollMs` */
  readonly idleMs?: number;
  /**
   * One look for all watches: gives those whose session may have changed. When it throws, every watch is woken: the next read
   * reports the error.
   */
  look(watched: readonly Watched<State>[]): Iterable<Watched<State>> | Promise<Iterable<Watched<State>>>;
}

/** Wakes one watch. */
export interface WatchBell {
  /** Forgets earlier rings. Call it before the session is read. */
  reset(): void;
  /** Resolves when the session may have changed since `reset`, and when the signal was aborted. */
  ring(): Promise<void>;
  /** Ends the watch. */
  end(): void;
}

/** How long looks stay frequent after the last change. */
const activeMs = 2000;

/**
 * All watches of one store handle share one poll. It stops when the last watch ends. A write of the handle itself wakes the
 * watches of that session at once.
 */
export class WatchHub<State> {
  readonly #options: WatchHubOptions<State>;
  readonly #bells = new Map<Watched<State>, Bell>();
  readonly #byKey = new Map<string, Set<Watched<State>>>();
  /** All of `#bells`, until one comes or goes. */
  #all: readonly Watched<State>[] | null = null;
  #isRunning = false;
  #isNudged = false;
  #nudge: () => void = () => undefined;
  #quietMs = 0;

  constructor(options: WatchHubOptions<State>) {
    this.#options = options;
  }

  /** The number of watches. */
  get size(): number {
    return this.#bells.size;
  }

  /** Follows a session until `end`. The caller updates `state` after each read. */
  follow(key: string, state: State, signal: AbortSignal): WatchBell {
    const watched: Watched<State> = { key, state };
    const bell = new Bell();
    const wake = (): void => bell.wake();
    signal.addEventListener("abort", wake, { once: true });
    if (signal.aborted) wake();
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

  /** Wakes the watches of a session that this handle has written to. */
  wake(key: string): void {
    const watched = this.#byKey.get(key);
    if (watched === undefined) return;
    this.#quietMs = 0;
    for (const each of watched) this.#bells.get(each)?.wake();
  }

  /** Wakes every watch: the handle is being closed, or the change is unknown. */
  wakeAll(): void {
    for (const bell of this.#bells.values()) bell.wake();
  }

  /** Looks at once: the next look finds what this handle has changed. */
  lookSoon(): void {
    this.#isNudged = true;
    this.#nudge();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#bells.size > 0) {
      await this.#wait();
      if (this.#bells.size === 0) break;
      this.#isNudged = false;
      try {
        this.#all ??= [...this.#bells.keys()];
        let isQuiet = true;
        for (const watched of await this.#options.look(this.#all)) {
          isQuiet = false;
          this.#bells.get(watched)?.wake();
        }
        if (!isQuiet) this.#quietMs = 0;
      } catch {
        this.wakeAll();
      }
    }
    this.#isRunning = false;
  }

  #wait(): Promise<void> {
    const { pollMs, idleMs = pollMs } = this.#options;
    const waitMs = this.#isNudged ? 0 : this.#quietMs < activeMs ? pollMs : idleMs;
    this.#quietMs += waitMs;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#nudge = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

class Bell {
  #wasRung = false;
  #resolve: (() => void) | null = null;

  wake(): void {
    this.#wasRung = true;
    this.#resolve?.();
    this.#resolve = null;
  }

  reset(): void {
    this.#wasRung = false;
  }

  ring(): Promise<void> {
    if (this.#wasRung) return Promise.resolve();
    return new Promise((resolve) => (this.#resolve = resolve));
  }
}
