import { ThroughlineError, type Clock } from "@throughline/core";

/** A clock that goes only when it is told to. */
export interface TestClock extends Clock {
  advance(byMs: number): void;
}

export function createTestClock(startMs = 1_000_000): TestClock {
  let nowMs = startMs;
  const sleepers = new Set<{ readonly untilMs: number; readonly wake: () => void }>();
  return {
    nowMs: () => nowMs,
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = {
          untilMs: nowMs + delayMs,
          wake(): void {
            sleepers.delete(sleeper);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          sleepers.delete(sleeper);
          reject(new ThroughlineError("ABORTED", "The wait was aborted."));
        });
      }),
    advance(byMs) {
      nowMs += byMs;
      for (const sleeper of sleepers) if (sleeper.untilMs <= nowMs) sleeper.wake();
    },
  };
}
