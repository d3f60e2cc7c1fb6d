import type { Clock, RandomSource, RecordIds } from "./ports.ts";

/**
 * Creates record ids of the form `<13-digit ms>_<8 hex>`. The hex part is a 32-bit counter with a random start in each
 * process. Two processes create the same id only if they have the same count in the same millisecond. The ids of one
 * process sort in the order of their creation, even when the clock steps back or the counter wraps.
 */
export function createRecordIds(ports: { readonly clock: Clock; readonly random: RandomSource }): RecordIds {
  // The random start is drawn for the first id, because some runtimes have no randomness while a module is loaded.
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
