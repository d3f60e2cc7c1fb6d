/**
 * Shares one flush among all who wrote before it began. A flush under way does not count for what was written after
 * its start; those writers get the next one, together.
 */
export class GroupFlush {
  readonly #flush: () => Promise<void>;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  /** Also between one and the next that is waited for. */
  get isRunning(): boolean {
    return this.#running !== null || this.#next !== null;
  }

  /** Resolves once everything written before the call is flushed. Rejects when that flush failed. */
  flushed(): Promise<void> {
    // Never two at once, not even in the moment between one and the next: the kernel tells one of them of a failure.
    if (this.#next !== null) return this.#next;
    if (this.#running === null) return this.#start();
    this.#next = this.#running.then(
      () => this.#startNext(),
      () => this.#startNext(),
    );
    return this.#next;
  }

  /** Resolves when no flush is under way; never rejects. */
  async idle(): Promise<void> {
    for (let last = this.#next ?? this.#running; last !== null; last = this.#next ?? this.#running)
      await last.catch(() => undefined);
  }

  #startNext(): Promise<void> {
    this.#next = null;
    return this.#start();
  }

  #start(): Promise<void> {
    const running = this.#flush().finally(() => {
      if (this.#running === running) this.#running = null;
    });
    this.#running = running;
    return running;
  }
}
