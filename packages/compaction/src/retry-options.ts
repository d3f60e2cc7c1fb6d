import type { AppendResult, Clock, RecordIds, SessionEntry, SessionStore, Summarizer } from "@throughline/core";
import type { CompactionListener } from "./compaction-event.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import type { RetryLease } from "./retry-lease.ts";
import type { RetryLimits } from "./retry-steps.ts";

/** Options of `createSummaryRetry`. */
export interface SummaryRetryOptions extends RetryLimits {
  /** Holds the sessions, and gets the better summaries. */
  readonly store: SessionStore;
  /** Times the deadlines and the waits between attempts. @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new records. @default the process's */
  readonly ids?: RecordIds;
  /** The same chain that compaction asks. */
  readonly summarizers: readonly Summarizer[];
  /** Counts tokens, so that a new summary is no larger than what it replaces. */
  readonly measure: TokenMeasure;
  /** How the tokens of a session are counted, by what its entry keeps of the tokenizer. @default `measure` */
  readonly measureFor?: (entry: SessionEntry) => TokenMeasure;
  /**
   * Keeps other processes away from a session while its summaries are made again.
   * @default none: no other process works on these sessions
   */
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
  /** Called with each event; what it throws is ignored. @default none */
  readonly onEvent?: CompactionListener;
}

/** What became of one pending summary. */
export type RetryOutcome =
  /** The next request begins with the better one; `appended` is to be read by a live session. */
  | {
      readonly kind: "improved";
      /** The id of the compaction whose summary was poorer. */
      readonly summaryId: string;
      /** A new compaction, or a note while a turn is open or a newer summary exists. */
      readonly as: "compaction" | "note";
      /** What the store appended. */
      readonly appended: AppendResult;
    }
  /** No summarizer gave a better summary. */
  | {
      readonly kind: "failed";
      /** The id of the compaction whose summary is still poorer. */
      readonly summaryId: string;
      /** How many attempts have failed so far. */
      readonly attempts: number;
      /** When it is tried again, UTC milliseconds; null when it is given up. */
      readonly nextAtMs: number | null;
    }
  /** The time of the next attempt has not come. */
  | {
      readonly kind: "waiting";
      /** The id of the compaction whose summary is to be made again. */
      readonly summaryId: string;
      /** When it is tried again, UTC milliseconds. */
      readonly nextAtMs: number;
    }
  /** All attempts failed earlier; the summary stays as it is. */
  | {
      readonly kind: "given-up";
      /** The id of the compaction whose summary stays. */
      readonly summaryId: string;
    }
  /** Improved by somebody else, or gone. */
  | {
      readonly kind: "settled";
      /** The id of the compaction whose summary was to be made again. */
      readonly summaryId: string;
    };
