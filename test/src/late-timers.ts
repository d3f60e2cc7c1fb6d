/** Measures how late the timers of this process are, so that a test can tell a slow machine from a broken promise. */
export class LateTimers {
  /** How late a timer was at most, in milliseconds. */
  mostMs = 0;
  #tickedAtMs = performance.now();
  readonly #timer = setInterval(() => {
    const nowMs = performance.now();
    this.mostMs = Math.max(this.mostMs, nowMs - this.#tickedAtMs - 10);
    this.#tickedAtMs = nowMs;
  }, 10);

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
