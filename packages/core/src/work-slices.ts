import { monotonicMs } from "./node/system-ports.ts";

/** Long work in parts, so that nobody else in the process waits for all of it. */
export interface WorkSlices {
  /** To be awaited where it is a promise: it lets others run once 20 ms were worked without a pause. */
  next(): Promise<void> | undefined;
}

const sliceMs = 20;

/** Begins a slice of work. */
export function createWorkSlices(): WorkSlices {
  let startedMs = monotonicMs();
  return {
    next() {
      if (monotonicMs() - startedMs < sliceMs) return undefined;
      return new Promise<void>((resolve) => setTimeout(resolve, 0)).then(() => void (startedMs = monotonicMs()));
    },
  };
}
