import { setImmediate as pause } from "node:timers/promises";
import { monotonicMs } from "@throughline/core/node";

/** Long work in parts, so that nobody else in the process waits for all of it. */
export interface Slices {
  /** Lets others run once enough was done without a pause. */
  next(): Promise<void> | undefined;
}

const sliceMs = 5;

export function createSlices(): Slices {
  let startedMs = monotonicMs();
  return {
    next() {
      if (monotonicMs() - startedMs < sliceMs) return undefined;
      return pause().then(() => void (startedMs = monotonicMs()));
    },
  };
}
