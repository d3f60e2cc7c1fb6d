import { abortedBefore } from "./refused.ts";

/** After this many releases without a wait in between, timers and signals get a chance to run. */
const burst = 32;

interface Waiting {
  resolve(): void;
  reject(error: unknown): void;
}

/** Admits a few callers at a time, in the order of their arrival. */
export class FifoLock {
  readonly #waiting = new Set<Waiting>();
  #left: number;
  #releases = 0;

  /** `most` limits the callers that are admitted at the same time. */
  constructor(most: number) {
    this.#left = most;
  }

  get isFree(): boolean {
    return this.#left > 0;
  }

  /**
   * Waits for admission, and returns the function that ends it.
   * @throws {ThroughlineError} ABORTED, and what `fail` was given
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortedBefore("it had its turn", signal);
    if (this.#left > 0) this.#left--;
    else await this.#queue(signal);
    return () => this.#leave();
  }

  fail(error: unknown): void {
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  #queue(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(waiting);
        reject(abortedBefore("it had its turn", signal));
      };
      const settled = (settle: () => void): void => {
        signal.removeEventListener("abort", onAbort);
        settle();
      };
      const waiting: Waiting = {
        resolve: () => settled(resolve),
        reject: (error) => settled(() => reject(error)),
      };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #leave(): void {
    if (++this.#releases % burst === 0 && this.#waiting.size > 0) setTimeout(() => this.#next(), 0);
    else this.#next();
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#left++;
      return;
    }
    this.#waiting.delete(first);
    first.resolve();
  }
}
