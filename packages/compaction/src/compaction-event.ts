import type { SessionRef } from "@throughline/core";
import type { SummarySource, SummaryUsage } from "./compaction-details.ts";
import type { FailedRung } from "./find-summary.ts";
import type { NothingReason } from "./plan-compaction.ts";

/** How much a planned compaction removes and keeps. */
export interface PlannedSizes {
  /** How many messages are replaced by the summary. */
  readonly removedMessages: number;
  /** How many messages stay. */
  readonly keptMessages: number;
  /** The size of the next request in tokens, without the compaction. */
  readonly tokensBefore: number;
}

/** What happens to a session's summaries, for those who watch. A listener that throws disturbs nothing. */
export type CompactionEvent =
  /** Once: before the first model is asked, or when a summary needs none. */
  | ({
      readonly name: "compaction.planned";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
    } & PlannedSizes)
  /** The plan that was announced is not the one that is carried out: another cut is, or the session changed meanwhile. */
  | ({
      readonly name: "compaction.replanned";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
    } & PlannedSizes)
  /** A rung of the ladder gave no summary; the next one is tried. */
  | ({
      readonly name: "compaction.rung-failed";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
    } & FailedRung)
  /** The compaction is in the log. */
  | {
      readonly name: "compaction.applied";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the compaction's record. */
      readonly recordId: string;
      /** Where the summary came from. */
      readonly source: SummarySource;
      /** Who wrote the summary; null for a checkpoint and a stub. */
      readonly provider: string | null;
      /** Whether the summary is to be made again by a model. */
      readonly needsRetry: boolean;
      /** Of the calls for the summary; null where no provider stated any. */
      readonly usage: SummaryUsage | null;
      /** The size of the next request in tokens, without the compaction. */
      readonly tokensBefore: number;
      /** The estimated size of the next request in tokens. */
      readonly tokensAfter: number;
    }
  /** There is nothing that a summary could replace. */
  | {
      readonly name: "compaction.nothing";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** Why there is nothing to replace. */
      readonly reason: NothingReason;
    }
  /** What was summarized changed or went away before the summary could be put in place. */
  | {
      readonly name: "compaction.superseded";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
    }
  /** A better summary takes the place of one that was to be made again. */
  | {
      readonly name: "retry.improved";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the compaction whose summary was poorer. */
      readonly summaryId: string;
      /** A new compaction, or a note while a turn is open or a newer summary exists. */
      readonly as: "compaction" | "note";
      /** Who wrote it, as the summarizer calls itself; null where that is not stated. */
      readonly provider: string | null;
      /** What the calls for it cost; null where no provider stated it. */
      readonly usage: SummaryUsage | null;
    }
  /** A redaction reached what a summary covers: it is not shown any more, */
  | {
      readonly name: "summary.withheld";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the compaction whose summary is no longer shown. */
      readonly summaryId: string;
    }
  /** and this is what is left of it, made without a model. */
  | {
      readonly name: "summary.replaced";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the compaction whose summary was withheld. */
      readonly summaryId: string;
      /** A new compaction, or a note beside the branch. */
      readonly as: "compaction" | "note";
    }
  /** No summarizer gave a better summary. */
  | {
      readonly name: "retry.failed";
      /** The address of the session in the store. */
      readonly ref: SessionRef;
      /** The id of the compaction whose summary is still poorer. */
      readonly summaryId: string;
      /** How many attempts have failed so far. */
      readonly attempts: number;
      /** Null: given up, the poorer summary stays. */
      readonly nextAtMs: number | null;
    };

/** Receives what happens to the summaries of a store's sessions. */
export type CompactionListener = (event: CompactionEvent) => void;
