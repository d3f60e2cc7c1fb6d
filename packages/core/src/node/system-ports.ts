import type { Clock, RandomSource, RecordIds } from "../ports.ts";
import { createRecordIds } from "../record-ids.ts";
import { hasErrorCode, ThroughlineError } from "../throughline-error.ts";

/** Reads the system's clock and waits by its timers. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (delayMs, signal) =>
    new Promise((resolve, reject) => {
      const abort = (): void => {
        clearTimeout(timer);
        const reason: unknown = signal?.reason;
        // A caller that waits often passes the error as the reason, because creating an error takes longer than the
        // rest of a wait.
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

/**
 * Returns the milliseconds since the process started, on a clock that cannot be set. Deadlines use it, because a
 * corrected time must not move them.
 */
export function monotonicMs(): number {
  return performance.now();
}

/** Provides randomness from the operating system. */
export const systemRandom: RandomSource = {
  uint32: () => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
  uuid: () => crypto.randomUUID(),
};

/** Creates the record ids of this process. All stores share this source, so that ids sort across stores. */
export const systemRecordIds: RecordIds = createRecordIds({ clock: systemClock, random: systemRandom });

export interface SystemPorts {
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
}

type OptionalPorts = { readonly [Port in keyof SystemPorts]?: SystemPorts[Port] | undefined };

/** Adds the system's clock, record ids and randomness to the options of a call that lack them. */
export function withSystemPorts<Options extends OptionalPorts>(options: Options): Options & SystemPorts {
  const { clock = systemClock, ids = systemRecordIds, random = systemRandom } = options;
  return { ...options, clock, ids, random };
}
