import { assertKnownOptions, runInSlices } from "@throughline/core/internal";
import { emptyCalibration } from "@throughline/tokens";
import { createAheadCounter } from "@throughline/tokens/internal";
import { GuardRun } from "./guard-run.ts";
import { guardSteps, isFinal, type GuardState, type GuardStep } from "./guard-steps.ts";
import { guardTable, type GuardOptions, type GuardOutcome } from "./guard-options.ts";

/**
 * Asks a model with a request that is kept inside its window.
 *
 * The request goes out unchanged when it fits. Otherwise, before the call by estimate or after an overflow by what the
 * provider said, the least is done that makes it fit: `SPEC.md` has the remedies and their order. The caller's messages
 * are never changed; the outcome has the request that was sent and the changes to keep.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; CONTEXT_OVERFLOW, with the provider's error as cause and every attempt in the details, when nothing helps. Any
 * other error of `call` at once, as it came.
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
    // What is taken out is judged by the size of all messages.
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
  // The table is total; a step it has no room for is a defect of the run and must not look like an answer.
  if (next === null) throw new TypeError(`${step} cannot happen while ${state}`);
  return next;
}
