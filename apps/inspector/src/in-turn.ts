/** Does a work again when it is asked for, one at a time: a work that has begun ends before the next one begins. */
export class InTurn {
  readonly #work: () => Promise<void>;
  readonly #signal: AbortSignal;
  readonly #leastMs: number;
  #isRunning = false;
  #isAsked = false;

  /** @param leastMs is the pause between two works, so that a hundred calls in a second are a few works */
  constructor(work: () => Promise<void>, signal: AbortSignal, leastMs: number) {
    this.#work = work;
    this.#signal = signal;
    this.#leastMs = leastMs;
  }

  /** Resolves when the work is done that this call asked for; at once when one is running, which is repeated then. */
  async ask(): Promise<void> {
    this.#isAsked = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#isAsked && !this.#signal.aborted) {
      this.#isAsked = false;
      await this.#work();
      if (this.#isAsked) await new Promise((resolve) => setTimeout(resolve, this.#leastMs));
    }
    this.#isRunning = false;
  }
}
