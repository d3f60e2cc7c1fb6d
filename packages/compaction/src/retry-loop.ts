import type { Clock, SessionRef } from "@throughline/core";
import type { SummaryRetry } from "./retry-summaries.ts";
import type { RetryOutcome } from "./retry-options.ts";

export interface RetryLoopOptions {
  readonly retry: SummaryRetry;
  readonly clock: Clock;
  /** 0 switches it off. @default 60 */
  readonly intervalSeconds?: number;
  /** The sessions to look at; asked anew each time. */
  readonly sessions: () => Iterable<SessionRef> | AsyncIterable<SessionRef>;
  /** What was improved, so that a live session can read it. */
  readonly onOutcome: (ref: SessionRef, outcome: RetryOutcome) => void;
  /** A session that cannot be read; the others go on. */
  readonly onError: (ref: SessionRef, error: unknown) => void;
  readonly signal: AbortSignal;
}

/** Looks for pending summaries at once and then again and again, until the signal. */
export async function runRetryLoop(options: RetryLoopOptions): Promise<void> {
  const { retry, clock, intervalSeconds = 60, signal } = options;
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
