/**
 * Queues work by key. Work under one key runs in order, and each piece starts after the previous piece has ended, even
 * by an error. Work under different keys runs at the same time.
 * @example
 * const queues = new KeyedQueues();
 * await queues.run("notes.md", () => appendLine("notes.md"));
 */
export class KeyedQueues {
  readonly #last = new Map<string, Promise<void>>();

  /** States whether no work runs or waits under any key. */
  get isIdle(): boolean {
    return this.#last.size === 0;
  }

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(key, promise);
    await before;
    try {
      return await work();
    } finally {
      resolve();
      if (this.#last.get(key) === promise) this.#last.delete(key);
    }
  }

  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
