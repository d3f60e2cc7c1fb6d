import type { SessionRef } from "@throughline/core";
import type { SummarySource, SummaryUsage } from "./compaction-details.ts";
import type { FailedRung } from "./find-summary.ts";
import type { NothingReason } from "./plan-compaction.ts";

export interface PlannedSizes {
  readonly removedMessages: number;
  readonly keptMessages: number;
  readonly tokensBefore: number;
}

/** What happens to a session's summaries, for those who watch. A listener that throws disturbs nothing. */
export type CompactionEvent =
  /** Once: before the first model is asked, or when a summary needs none. */
  | ({ readonly name: "compaction.planned"; readonly ref: SessionRef } & PlannedSizes)
  /** The plan that was announced is not the one that is carried out: another cut is, or the session changed meanwhile. */
  | ({ readonly name: "compaction.replanned"; readonly ref: SessionRef } & PlannedSizes)
  | ({ readonly name: "compaction.rung-failed"; readonly ref: SessionRef } & FailedRung)
  | {
      readonly name: "compaction.applied";
      readonly ref: SessionRef;
      readonly recordId: string;
      readonly source: SummarySource;
      readonly provider: string | null;
      readonly needsRetry: boolean;
      /** Of the calls for the summary; null where no provider stated any. */
      readonly usage: SummaryUsage | null;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly name: "compaction.nothing"; readonly ref: SessionRef; readonly reason: NothingReason }
  /** What was summarized changed or went away before the summary could be put in place. */
  | { readonly name: "compaction.superseded"; readonly ref: SessionRef }
  | {
      readonly name: "retry.improved";
      readonly ref: SessionRef;
      readonly summaryId: string;
      readonly as: "compaction" | "note";
      /** Who wrote it, and what its calls cost; null where that is not stated. */
      readonly provider: string | null;
      readonly usage: SummaryUsage | null;
    }
  /** A redaction reached what a summary covers: it is not shown any more, */
  | { readonly name: "summary.withheld"; readonly ref: SessionRef; readonly summaryId: string }
  /** and this is what is left of it, made without a model. */
  | {
      readonly name: "summary.replaced";
      readonly ref: SessionRef;
      readonly summaryId: string;
      readonly as: "compaction" | "note";
    }
  | {
      readonly name: "retry.failed";
      readonly ref: SessionRef;
      readonly summaryId: string;
      readonly attempts: number;
      /** Null: given up, the poorer summary stays. */
      readonly nextAtMs: number | null;
    };

export type CompactionListener = (event: CompactionEvent) => void;
