import type { AppendResult, Clock, RecordIds, SessionEntry, SessionStore, Summarizer } from "@throughline/core";
import type { CompactionListener } from "./compaction-event.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import type { RetryLease } from "./retry-lease.ts";
import type { RetryLimits } from "./retry-steps.ts";

/** Options of `createSummaryRetry`. */
export interface SummaryRetryOptions extends RetryLimits {
  readonly store: SessionStore;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new records. @default the process's */
  readonly ids?: RecordIds;
  /** The same chain that compaction asks. */
  readonly summarizers: readonly Summarizer[];
  readonly measure: TokenMeasure;
  /** How the tokens of a session are counted, by what its entry keeps of the tokenizer. @default `measure` */
  readonly measureFor?: (entry: SessionEntry) => TokenMeasure;
  /** @default none: no other process works on these sessions */
  readonly lease?: RetryLease;
  /** Of one summary, in tokens. @default 2000 */
  readonly maxSummaryTokens?: number;
  /** As in `CompactionSettings`. @default 2000 */
  readonly toolResultChars?: number;
  /**
   * Writes only what was withheld because of a redaction, in its place at once, and leaves the better one due: for a
   * summarizer that asks no model. @default false
   */
  readonly stopgap?: boolean;
  /** For all summarizers of one record. @default 600000 */
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
