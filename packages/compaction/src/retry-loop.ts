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

/** Options of `runRetryLoop`. */
export interface RetryLoopOptions {
  /** Makes the summaries; from `createSummaryRetry`. */
  readonly retry: SummaryRetry;
  /** Times the waits between two rounds. @default the system's clock */
  readonly clock?: Clock;
  /** 0 switches it off. @default 60 */
  readonly intervalSeconds?: number;
  /** The sessions to check; requested again each time. */
  readonly sessions: () => Iterable<SessionRef> | AsyncIterable<SessionRef>;
  /** What was improved, so that a live session can read it. */
  readonly onOutcome: (ref: SessionRef, outcome: RetryOutcome) => void;
  /** A session that cannot be read; the others go on. */
  readonly onError: (ref: SessionRef, error: unknown) => void;
  /** Ends the loop; it then resolves. */
  readonly signal: AbortSignal;
}

const { callback, number, objectWith, required } = optionKinds;

/** The kinds of the options of `runRetryLoop`. */
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
 * Makes pending summaries again at once, and then every `intervalSeconds`, until the signal is aborted.
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
