import {
  assertKnownOptions,
  loadExisting,
  optionKinds,
  type OptionTable,
  portKinds,
  withSystemPorts,
} from "@throughline/core/internal";
import type { SessionRef } from "@throughline/core";
import type { TokenMeasure } from "./compaction-work.ts";
import { readRetries } from "./retry-entry.ts";
import type { SummaryRetryOptions, RetryOutcome } from "./retry-options.ts";
import { RetryPass } from "./retry-pass.ts";
import { retryLimitsTable } from "./retry-steps.ts";

/** Configures one run of a `SummaryRetry`. */
export interface RetryRun {
  /** Reads the whole log instead of the entry; needed after an import or a redaction. @default false */
  readonly scan?: boolean;
  /** Ends the run; summaries that are not written yet stay due. */
  readonly signal?: AbortSignal;
}

/** Rewrites the summaries of a session that no model wrote, or that a redaction made outdated. */
export interface SummaryRetry {
  /** Runs one round. Returns no outcome when nothing is pending or another process holds the lease. */
  run(ref: SessionRef, options?: RetryRun): Promise<readonly RetryOutcome[]>;
}

const { callback, flag, listOf, number, objectOf, objectWith, required, signal: signalKind } = optionKinds;

export const summaryRetryTable: OptionTable<SummaryRetryOptions> = {
  ...retryLimitsTable,
  store: required(portKinds.store),
  clock: portKinds.clock,
  ids: portKinds.ids,
  summarizers: required(listOf(portKinds.summarizer)),
  measure: required(objectOf<TokenMeasure>({ countMessage: required(callback), countText: required(callback) })),
  measureFor: callback,
  lease: objectWith("acquire", "release"),
  maxSummaryTokens: number({ min: 100, max: 1_000_000 }),
  toolResultChars: number({ min: 100, max: 1_000_000 }),
  stopgap: flag,
  deadlineMs: number({ min: 1, max: 86_400_000 }),
  onEvent: callback,
};

export const retryRunTable: OptionTable<RetryRun> = { scan: flag, signal: signalKind };

/**
 * Creates a retry for summaries that no model wrote, or that a redaction made outdated.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is not known, has another type, or is out of range
 */
export function createSummaryRetry(options: SummaryRetryOptions): SummaryRetry {
  assertKnownOptions<SummaryRetryOptions>("createSummaryRetry", options, summaryRetryTable);
  return {
    async run(ref, run = {}) {
      assertKnownOptions<RetryRun>("run", run, retryRunTable);
      const { scan = false, signal } = run;
      const { store, lease } = options;
      if (!scan && Object.keys(readRetries((await loadExisting(store, ref)).entry)).length === 0) return [];
      if (lease !== undefined && !(await lease.acquire(ref))) return [];
      try {
        return await new RetryPass(withSystemPorts(options), ref, signal ?? null).run(scan);
      } finally {
        await lease?.release(ref);
      }
    },
  };
}
