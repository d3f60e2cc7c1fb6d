import type { AppendResult, Clock, RecordIds, SessionEntry, SessionStore, Summarizer } from "@throughline/core";
import type { CompactionListener } from "./compaction-event.ts";
import type { TokenMeasure } from "./compaction-work.ts";
import type { RetryLease } from "./retry-lease.ts";
import type { RetryLimits } from "./retry-steps.ts";

/** Configures `createSummaryRetry`. */
export interface SummaryRetryOptions extends RetryLimits {
  /** Holds the sessions and receives the better summaries. */
  readonly store: SessionStore;
  /** Times the deadlines and the waits between attempts. @default the system's clock */
  readonly clock?: Clock;
  /** Makes the ids of new records. @default the process's */
  readonly ids?: RecordIds;
  /** Lists the summarizers in the order they are asked; usually the same chain that compaction uses. */
  readonly summarizers: readonly Summarizer[];
  /** Counts tokens, so that a new summary is no larger than the part it replaces. */
  readonly measure: TokenMeasure;
  /** Returns the token counter for a session, by the tokenizer data in its entry. @default `measure` */
  readonly measureFor?: (entry: SessionEntry) => TokenMeasure;
  /**
   * Keeps other processes away from a session while its summaries are rewritten.
   * @default none: no other process works on these sessions
   */
  readonly lease?: RetryLease;
  /** Limits one summary, in tokens. @default 2000 */
  readonly maxSummaryTokens?: number;
  /** Cuts longer tool results in the middle, in characters, like `CompactionSettings.toolResultChars`. @default 2000 */
  readonly toolResultChars?: number;
  /**
   * Replaces only summaries that a redaction withheld, and leaves the better summary due. Use it with a summarizer that
   * asks no model. @default false
   */
  readonly stopgap?: boolean;
  /** Limits the time of all summarizers of one record, in milliseconds. @default 600000 */
  readonly deadlineMs?: number;
  /** Is called with each event; an error that it throws is ignored. @default none */
  readonly onEvent?: CompactionListener;
}

/** States what happened to one pending summary. */
export type RetryOutcome =
  /** The next request starts with the better summary. A live session must read `appended`. */
  | {
      readonly kind: "improved";
      /** Holds the id of the compaction whose summary was poorer. */
      readonly summaryId: string;
      /** States the form of the new text: a compaction, or a note while a turn is open or a newer summary exists. */
      readonly as: "compaction" | "note";
      /** Holds what the store appended. */
      readonly appended: AppendResult;
    }
  /** No summarizer gave a better summary. */
  | {
      readonly kind: "failed";
      /** Holds the id of the compaction whose summary is still poorer. */
      readonly summaryId: string;
      /** Counts the failed attempts so far. */
      readonly attempts: number;
      /** Holds the time of the next attempt in UTC milliseconds; null when no attempt is left. */
      readonly nextAtMs: number | null;
    }
  /** The time of the next attempt has not come. */
  | {
      readonly kind: "waiting";
      /** Holds the id of the compaction whose summary needs a retry. */
      readonly summaryId: string;
      /** Holds the time of the next attempt in UTC milliseconds. */
      readonly nextAtMs: number;
    }
  /** All attempts failed earlier; the summary stays unchanged. */
  | {
      readonly kind: "given-up";
      /** Holds the id of the compaction whose summary stays. */
      readonly summaryId: string;
    }
  /** Another process improved the summary, or the summary no longer exists. */
  | {
      readonly kind: "settled";
      /** Holds the id of the compaction whose summary needed a retry. */
      readonly summaryId: string;
    };
