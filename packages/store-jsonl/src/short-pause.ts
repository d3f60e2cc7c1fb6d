const cell = new Int32Array(new SharedArrayBuffer(4));
const pauseMs = 0.02;

/** Gives the processor away for as short as it can be: 0.02 ms and the granularity of the system's timers, about 0.08 in all. */
export function pauseShortly(): void {
  Atomics.wait(cell, 0, 0, pauseMs);
}
