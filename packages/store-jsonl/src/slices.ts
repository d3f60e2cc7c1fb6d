import { setImmediate as pause } from "node:timers/promises";
import { monotonicMs } from "@throughline/core/internal";

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

const cell = new Int32Array(new SharedArrayBuffer(4));
const pauseMs = 0.02;

/** Gives the processor away for as short as it can be: 0.02 ms and the granularity of the system's timers, about 0.08 in all. */
export function pauseShortly(): void {
  Atomics.wait(cell, 0, 0, pauseMs);
}
