import type { Clock } from "@throughline/core";

/** A clock that the test sets. Who sleeps is woken in the order of the times. */
export interface SetClock extends Clock {
  advance(byMs: number): Promise<void>;
}

export function createSetClock(): SetClock {
  let nowMs = 1_000_000;
  const sleepers = new Set<{ readonly atMs: number; readonly resolve: () => void }>();
  return {
    nowMs: () => nowMs,
    sleep: (delayMs, signal) =>
      new Promise((resolve, reject) => {
        const sleeper = { atMs: nowMs + delayMs, resolve };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          sleepers.delete(sleeper);
          reject(signal.reason as Error);
        });
      }),
    advance: async (byMs) => {
      const untilMs = nowMs + byMs;
      for (;;) {
        await settle();
        const next = [...sleepers].toSorted((one, other) => one.atMs - other.atMs)[0];
        if (next === undefined || next.atMs > untilMs) break;
        nowMs = Math.max(nowMs, next.atMs);
        sleepers.delete(next);
        next.resolve();
      }
      nowMs = untilMs;
      await settle();
    },
  };
}

/** What is under way in memory gets on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
