import { createEntryLease, createSummaryRetry, type RetryLimits, tokenMeasure } from "@throughline/compaction/internal";
import type { Clock, SessionRef, SessionStore, Summarizer } from "@throughline/core";
import { sessionRefText } from "@throughline/core/internal";
import { emptyCalibration, type TokenEstimator } from "@throughline/tokens";

export interface SummaryRetriesOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly summarizers: readonly Summarizer[];
  readonly estimator: TokenEstimator;
  /** The name of this process in the leases of summaries. */
  readonly owner: string;
  /** When a failed summary is tried again; null: never. */
  readonly limits: RetryLimits | null;
  readonly maxSummaryTokens: number | undefined;
  readonly toolResultChars: number | undefined;
  readonly onError: (error: unknown) => void;
}

/** Makes the summaries again that no model wrote, beside the requests of their sessions. */
export interface SummaryRetries {
  /** Tries the due summaries of a session in the background. It is called when somebody works in the session. */
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
