import {
  assertKnownOptions,
  optionKinds,
  portKinds,
  withSystemPorts,
  type OptionTable,
} from "@throughline/core/internal";
import type { Clock, SessionRef } from "@throughline/core";
import type { SummaryRetry } from "./retry-summaries.ts";
import type { RetryOutcome } from "./retry-options.ts";

/** Configures `runRetryLoop`. */
export interface RetryLoopOptions {
  /** Rewrites the summaries; `createSummaryRetry` creates it. */
  readonly retry: SummaryRetry;
  /** Times the waits between two rounds. @default the system's clock */
  readonly clock?: Clock;
  /** Sets the seconds between two rounds; 0 switches the loop off. @default 60 */
  readonly intervalSeconds?: number;
  /** Returns the sessions to check; called once per round. */
  readonly sessions: () => Iterable<SessionRef> | AsyncIterable<SessionRef>;
  /** Is called with each outcome, so that a live session can read an improved summary. */
  readonly onOutcome: (ref: SessionRef, outcome: RetryOutcome) => void;
  /** Is called when a session cannot be read; the loop continues with the next session. */
  readonly onError: (ref: SessionRef, error: unknown) => void;
  /** Ends the loop, whose promise then resolves. */
  readonly signal: AbortSignal;
}

const { callback, number, objectWith, required } = optionKinds;

export const retryLoopTable: OptionTable<RetryLoopOptions> = {
  retry: required(objectWith("run")),
  clock: portKinds.clock,
  intervalSeconds: number({ min: 0, max: 86_400 }),
  sessions: required(callback),
  onOutcome: required(callback),
  onError: required(callback),
  signal: required(optionKinds.signal),
};

/**
 * Rewrites pending summaries at once, and then every `intervalSeconds`, until the signal is aborted.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is not known, has another type, or is out of range
 */
export async function runRetryLoop(options: RetryLoopOptions): Promise<void> {
  assertKnownOptions<RetryLoopOptions>("runRetryLoop", options, retryLoopTable);
  const { retry, intervalSeconds = 60, signal } = options;
  const { clock } = withSystemPorts(options);
  let scan = true;
  while (intervalSeconds > 0 && !signal.aborted) {
    for await (const ref of options.sessions()) {
      if (signal.aborted) return;
      try {
        for (const outcome of await retry.run(ref, { scan, signal })) options.onOutcome(ref, outcome);
      } catch (error) {
        if (!signal.aborted) options.onError(ref, error);
      }
    }
    scan = false;
    try {
      await clock.sleep(intervalSeconds * 1000, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
