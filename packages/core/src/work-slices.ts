import { monotonicMs } from "./node/system-ports.ts";

/** Splits long work into slices, so that no other work in the process waits for all of it. */
export interface WorkSlices {
  /**
   * Returns a promise after 20 ms or 5,000 steps of work without a pause, else undefined. Awaiting the promise lets
   * other work run.
   * @param steps how many were done since the last call. @default 1
   */
  next(steps?: number): Promise<void> | undefined;
}

const sliceMs = 20;
/**
 * A very fast machine may pause needlessly, because these steps take less than a slice. A number of steps is used all
 * the same, because it can be counted.
 */
export const sliceSteps = 5000;

export function createWorkSlices(): WorkSlices {
  let startedMs = monotonicMs();
  let steps = 0;
  return {
    next(done = 1) {
      steps += done;
      if (steps < sliceSteps && monotonicMs() - startedMs < sliceMs) return undefined;
      return new Promise<void>((resolve) => setTimeout(resolve, 0)).then(() => {
        startedMs = monotonicMs();
        steps = 0;
      });
    },
  };
}

/**
 * Long work stops after each small step, and continues when its driver `runSteps` or `runInSlices` requests the next
 * step.
 */
export type Steps<Result> = Generator<undefined, Result, void>;

/** Does all of the work at once, for callers that know that the work is small. */
export function runSteps<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

export const fewerSteps = 16;

/** Runs the same work with a stop after 16 steps, because each stop passes through every generator around it. */
export function* inFewerSteps<Result>(steps: Steps<Result>): Steps<Result> {
  for (let count = 1; ; count++) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (count % fewerSteps === 0) yield;
  }
}

/** Does the work in slices, so that other work runs after each 20 ms. */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = createWorkSlices();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    const pause = slices.next();
    if (pause !== undefined) await pause;
  }
}
