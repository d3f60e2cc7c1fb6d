import { loadExisting, type SessionRef } from "@throughline/core";
import { readRetries } from "./retry-entry.ts";
import { RetryPass } from "./retry-pass.ts";
import type { SummaryRetryOptions, RetryOutcome } from "./retry-options.ts";

export interface RetryRun {
  /** Looks through the whole log instead of trusting the entry: after an import or a redaction. @default false */
  readonly scan?: boolean;
  readonly signal?: AbortSignal;
}

/** Makes the summaries of a session again that no model wrote, or that no longer hold. */
export interface SummaryRetry {
  /** Empty when nothing is pending, or another process has the lease. */
  run(ref: SessionRef, options?: RetryRun): Promise<readonly RetryOutcome[]>;
}

export function createSummaryRetry(options: SummaryRetryOptions): SummaryRetry {
  return {
    async run(ref, { scan = false, signal } = {}) {
      const { store, lease } = options;
      if (!scan && Object.keys(readRetries((await loadExisting(store, ref)).entry)).length === 0) return [];
      if (lease !== undefined && !(await lease.acquire(ref))) return [];
      try {
        return await new RetryPass(options, ref, signal ?? null).run(scan);
      } finally {
        await lease?.release(ref);
      }
    },
  };
}
