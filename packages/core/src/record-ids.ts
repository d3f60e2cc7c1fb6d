import type { Clock, RandomSource, RecordIds } from "./ports.ts";

/**
 * Ids of the form `<13-digit ms>_<8 hex>`. The hex part is a 32-bit counter with a random start in each process. Two
 * processes create the same id only if they have the same count in the same millisecond. Inside a process the ids sort
 * in the order they were made, also when the clock steps back or the counter wraps.
 */
export function createRecordIds(ports: { readonly clock: Clock; readonly random: RandomSource }): RecordIds {
  // Drawn for the first id: some runtimes have no randomness while a module is loaded.
  let counter: number | null = null;
  let lastMs = 0;
  return {
    next() {
      counter = ((counter ?? ports.random.uint32()) + 1) >>> 0;
      lastMs = Math.max(ports.clock.nowMs(), counter === 0 ? lastMs + 1 : lastMs);
      return `${String(lastMs).padStart(13, "0")}_${counter.toString(16).padStart(8, "0")}`;
    },
  };
}
