import { CallRefusal } from "./tool-failure.ts";

/** Both limits apply to all clients of a server together. */
const mostWorking = 4;
const mostWaiting = 100;

/** Limits the calls that run at once. Others wait in their order, and beyond `mostWaiting` they are refused. */
export class CallLimits {
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    if (this.#working >= mostWorking) await this.#turn(signal);
    else this.#working += 1;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // The slot passes directly to the next call, so the counter stays the same.
      if (next === undefined) this.#working -= 1;
      else next();
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#waiting.length >= mostWaiting) throw new CallRefusal("Too many calls wait already. Try again later.");
    await new Promise<void>((resolve, reject) => {
      const start = (): void => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = (): void => {
        const at = this.#waiting.indexOf(start);
        if (at === -1) return;
        this.#waiting.splice(at, 1);
        reject(signal.reason as Error);
      };
      this.#waiting.push(start);
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}
