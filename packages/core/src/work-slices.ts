import { monotonicMs } from "./node/system-ports.ts";

/** Long work in parts, so that nobody else in the process waits for all of it. */
export interface WorkSlices {
  /**
   * To be awaited where it is a promise: it lets others run once 20 ms were worked, or 5,000 steps, without a pause.
   *
   * @param steps how many were done since the last call. @default 1
   */
  next(steps?: number): Promise<void> | undefined;
}

const sliceMs = 20;
/** A machine so fast that these take less than a slice would pause needlessly; a bound by number is one that can be counted. */
export const sliceSteps = 5000;

/** Begins a slice of work. */
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

/** Long work that stops after each small step, and goes on when it is asked to. It is driven by `runSteps` or `runInSlices`. */
export type Steps<Result> = Generator<undefined, Result, void>;

/** Does all of the work at once, for callers that know that it is little. */
export function runSteps<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** How many steps lie between two stops of `inFewerSteps`. */
export const fewerSteps = 16;

/** The same work with a stop after 16 of its steps: each stop passes through every generator that it is nested in. */
export function* inFewerSteps<Result>(steps: Steps<Result>): Steps<Result> {
  for (let count = 1; ; count++) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (count % fewerSteps === 0) yield;
  }
}

/** Does the same work in slices: others get their turn after 20 ms of it. */
export async function runInSlices<Result>(steps: Steps<Result>): Promise<Result> {
  const slices = createWorkSlices();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    const pause = slices.next();
    if (pause !== undefined) await pause;
  }
}
