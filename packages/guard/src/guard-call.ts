import { assertKnownOptions, runInSlices } from "@throughline/core/internal";
import { emptyCalibration } from "@throughline/tokens";
import { createAheadCounter } from "@throughline/tokens/internal";
import { GuardRun } from "./guard-run.ts";
import { guardSteps, isFinal, type GuardState, type GuardStep } from "./guard-steps.ts";
import { guardTable, type GuardOptions, type GuardOutcome } from "./guard-options.ts";

/**
 * Asks a model with a request that is kept inside its window.
 *
 * The request goes out unchanged when it fits. Otherwise the guard takes the smallest measure that makes it fit. The
 * estimate decides before the call, and the provider's error decides after an overflow. `SPEC.md` lists the remedies
 * and their order. The caller's messages are never changed. The outcome holds the request that was sent and the changes
 * to keep.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option. CONTEXT_OVERFLOW when no remedy helps, with the
 * provider's error as cause and every attempt in the details. Any other error of `call` is rethrown unchanged at once.
 */
export async function guardCall<Reply>(options: GuardOptions<Reply>): Promise<GuardOutcome<Reply>> {
  assertKnownOptions<GuardOptions<Reply>>("guardCall", options, guardTable);
  const { request, actual, calibration = emptyCalibration } = options;
  const counter = createAheadCounter(options.counter);
  const ahead = (from: number): Promise<void> =>
    runInSlices(counter.countAhead(request.messages as readonly object[], from));
  await ahead(actual?.coversMessages ?? 0);
  const run = new GuardRun({ ...options, counter }, calibration);
  let state: GuardState = "checking";
  while (!isFinal(state)) {
    // A remedy that removes messages is judged by the size of all messages, so each of them must be counted.
    if (state === "shrinking") await ahead(0);
    state = nextState(state, await act(run, state));
  }
  if (state === "done" || state === "kept") return run.outcome(state);
  throw state === "raised" ? run.overflowError() : run.error;
}

async function act<Reply>(run: GuardRun<Reply>, state: GuardState): Promise<GuardStep> {
  if (state === "checking") return run.check();
  return state === "calling" ? run.call() : run.shrink();
}

function nextState(state: GuardState, step: GuardStep): GuardState {
  const next = guardSteps[state][step];
  // The table lists every step. A step without a next state is a defect of the run, and must not look like an answer.
  if (next === null) throw new TypeError(`${step} cannot happen while ${state}`);
  return next;
}
