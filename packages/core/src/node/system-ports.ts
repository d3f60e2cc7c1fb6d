import { randomBytes, randomUUID } from "node:crypto";
import process from "node:process";
import type { Clock, Environment, RandomSource, RecordIds } from "../ports.ts";
import { createRecordIds } from "../record-ids.ts";
import { hasErrorCode, ThroughlineError } from "../throughline-error.ts";

/** The system's clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (delayMs, signal) =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer);
        const reason: unknown = signal?.reason;
        // Whoever waits often brings the error along: making one takes longer than the rest of a wait.
        if (hasErrorCode(reason, "ABORTED")) reject(reason as Error);
        else reject(new ThroughlineError("ABORTED", "The wait was aborted.", { cause: reason }));
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, delayMs);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    }),
};

/** Milliseconds since the process began, on a clock that nobody sets: for deadlines, which a corrected time must not move. */
export function monotonicMs(): number {
  return performance.now();
}

/** Randomness from the operating system. */
export const systemRandom: RandomSource = {
  uint32: () => randomBytes(4).readUInt32BE(),
  uuid: () => randomUUID(),
};

/** The variables of this process. */
export const systemEnvironment: Environment = { get: (name) => process.env[name] };

/** The record ids of this process. One source for all stores, so that ids sort across them. */
export const systemRecordIds: RecordIds = createRecordIds({ clock: systemClock, random: systemRandom });
