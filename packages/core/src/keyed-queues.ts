/**
 * A queue for each key: work under one key is done in the order it was given, each piece after the one before has ended,
 * however that ended. Work under different keys runs at the same time.
 *
 * @example
 * const queues = new KeyedQueues();
 * await queues.run("notes.md", () => appendLine("notes.md"));
 */
export class KeyedQueues {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs work behind what was given under the same key. Gives what the work gives. */
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

  /** Resolves once nothing waits or runs. */
  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
