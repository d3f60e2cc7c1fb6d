/** Knows the work that runs, so that an end can wait for it. */
export class PendingWork {
  readonly #running = new Set<Promise<unknown>>();

  /** Tracks work until it has ended, and returns its result. */
  track<Value>(work: Promise<Value>): Promise<Value> {
    const tracked: Promise<Value> = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  /** Resolves when the work that runs now has ended, also by an error. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Resolves when no work runs, including work that began meanwhile. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await this.ended();
  }
}
