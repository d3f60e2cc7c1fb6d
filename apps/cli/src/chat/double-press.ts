/** Finds the second press of a key that acts only when it is pressed twice in a row. */
export class DoublePress {
  readonly #withinMs: number;
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(withinMs: number) {
    this.#withinMs = withinMs;
  }

  /** Returns whether this is the second press. */
  press(): boolean {
    const nowMs = performance.now();
    const isSecond = nowMs - this.#atMs < this.#withinMs;
    this.#atMs = nowMs;
    return isSecond;
  }

  /** Makes the next press a first one. */
  forget(): void {
    this.#atMs = Number.NEGATIVE_INFINITY;
  }
}
