import type { Clock } from "@throughline/core";

/** A clock that the test sets. Nothing sleeps on it for ever: a sleep ends when it is aborted. */
export class StoppedClock implements Clock {
  atMs = 1_772_366_400_000;

  nowMs(): number {
    return this.atMs;
  }

  sleep(_delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((_resolve, reject) => {
      const abort = (): void => reject(new Error("woken"));
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }
}
