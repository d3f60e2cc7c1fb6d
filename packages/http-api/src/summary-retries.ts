import { createEntryLease, createSummaryRetry, type RetryLimits, tokenMeasure } from "@throughline/compaction/internal";
import type { Clock, SessionRef, SessionStore, Summarizer } from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";
import { emptyCalibration, type TokenEstimator } from "@throughline/tokens";

export interface SummaryRetriesOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly summarizers: readonly Summarizer[];
  readonly estimator: TokenEstimator;
  /** Identifies this process in the leases of summaries, so that two processes do not write the same one. */
  readonly owner: string;
  /** Sets when a failed summary is repeated; null disables that. */
  readonly limits: RetryLimits | null;
  readonly maxSummaryTokens: number | undefined;
  readonly toolResultChars: number | undefined;
  readonly onError: (error: unknown) => void;
}

export interface SummaryRetries {
  /** Runs in the background, because a turn must not wait for summaries. Opening a turn calls this. */
  soon(ref: SessionRef): void;
  close(): Promise<void>;
}

export function createSummaryRetries(options: SummaryRetriesOptions): SummaryRetries {
  const { store, clock, summarizers, estimator, owner, limits, onError } = options;
  const { maxSummaryTokens, toolResultChars } = options;
  const stopping = new AbortController();
  const running = new Map<string, Promise<void>>();
  const run = async (ref: SessionRef): Promise<void> => {
    const counter = await estimator.counterFor({ provider: null, modelId: "" });
    const retry = createSummaryRetry({
      ...limits,
      store,
      clock,
      summarizers,
      measure: tokenMeasure(counter, emptyCalibration),
      lease: createEntryLease({ store, clock, owner }),
      ...(maxSummaryTokens === undefined ? {} : { maxSummaryTokens }),
      ...(toolResultChars === undefined ? {} : { toolResultChars }),
    });
    await retry.run(ref, { signal: stopping.signal });
  };
  return {
    soon(ref) {
      const key = sessionRefText(ref);
      if (limits === null || summarizers.length === 0 || running.has(key) || stopping.signal.aborted) return;
      const work = run(ref)
        .catch((error: unknown) => {
          if (!stopping.signal.aborted) onError(error);
        })
        .finally(() => running.delete(key));
      running.set(key, work);
    },
    async close() {
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}
