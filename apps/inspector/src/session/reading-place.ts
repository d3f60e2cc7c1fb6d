/** Knows the record at the top of the screen. Only what shows it is rendered at each step of the wheel. */
export class ReadingPlace {
  seq = 1;
  readonly #listeners = new Set<(seq: number) => void>();

  move(seq: number): void {
    if (seq === this.seq) return;
    this.seq = seq;
    for (const listener of this.#listeners) listener(seq);
  }

  /** Returns a function that ends it. */
  listen(listener: (seq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
