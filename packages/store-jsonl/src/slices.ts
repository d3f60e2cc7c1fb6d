import { setImmediate as pause } from "node:timers/promises";
import { monotonicMs } from "@throughline/core/internal";

/** Divides long work, so that other work of the process can run in between. */
export interface Slices {
  /** Pauses if 5 ms have passed since the last pause. Otherwise it returns undefined, and awaiting that is cheap. */
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

/**
 * Gives up the processor for the shortest possible time: 0.02 ms plus the granularity of the system's timers, about
 * 0.08 ms in all.
 */
export function pauseShortly(): void {
  Atomics.wait(cell, 0, 0, pauseMs);
}
