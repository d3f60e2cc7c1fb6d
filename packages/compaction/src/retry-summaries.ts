import {
  loadExisting,
  type AppendResult,
  type Clock,
  type RecordIds,
  type SessionEntry,
  type SessionRef,
  type SessionStore,
  type Summarizer,
} from "@throughline/core";
import type { CompactionListener } from "./compaction-event.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import { readRetries } from "./retry-entry.ts";
import type { RetryLease } from "./retry-lease.ts";
import { RetryPass } from "./retry-pass.ts";
import type { RetryLimits } from "./retry-steps.ts";

export interface SummaryRetryOptions extends RetryLimits {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly ids: RecordIds;
  /** The same chain that compaction asks. */
  readonly summarizers: readonly Summarizer[];
  readonly measure: TokenMeasure;
  /** How the tokens of a session are counted, by what its entry keeps of the tokenizer. @default `measure` */
  readonly measureFor?: (entry: SessionEntry) => TokenMeasure;
  /** @default none: no other process works on these sessions */
  readonly lease?: RetryLease;
  /** Of one summary, in tokens. @default 2000 */
  readonly maxSummaryTokens?: number;
  /**
   * Writes only what was withheld because of a redaction, in its place at once, and leaves the better one due: for a
   * summariser that asks no model. @default false
   */
  readonly stopgap?: boolean;
  /** For all summarisers of one record. @default 600000 */
  readonly deadlineMs?: number;
  /** @default none */
  readonly onEvent?: CompactionListener;
}

/** What became of one pending summary. */
export type RetryOutcome =
  /** The next request begins with the better one; `appended` is to be read by a live session. */
  | {
      readonly kind: "improved";
      readonly summaryId: string;
      readonly as: "compaction" | "note";
      readonly appended: AppendResult;
    }
  | { readonly kind: "failed"; readonly summaryId: string; readonly attempts: number; readonly nextAtMs: number | null }
  | { readonly kind: "waiting"; readonly summaryId: string; readonly nextAtMs: number }
  | { readonly kind: "given-up"; readonly summaryId: string }
  /** Improved by somebody else, or gone. */
  | { readonly kind: "settled"; readonly summaryId: string };

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
