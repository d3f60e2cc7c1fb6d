import type { Clock, RandomSource, RecordIds } from "../ports.ts";
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
  uint32: () => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
  uuid: () => crypto.randomUUID(),
};

/** The record ids of this process. One source for all stores, so that ids sort across them. */
export const systemRecordIds: RecordIds = createRecordIds({ clock: systemClock, random: systemRandom });

/** The ports that a function takes where its caller gives none. */
export interface SystemPorts {
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
}

/** The options of a call, with the system's clock, record ids and randomness where they are not given. */
export function withSystemPorts<Options extends Partial<SystemPorts>>(options: Options): Options & SystemPorts {
  const { clock = systemClock, ids = systemRecordIds, random = systemRandom } = options;
  return { ...options, clock, ids, random };
}
