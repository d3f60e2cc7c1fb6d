import type { SessionRef } from "@throughline/core";
import type { SummarySource, SummaryUsage } from "./compaction-details.ts";
import type { FailedRung } from "./find-summary.ts";
import type { NothingReason } from "./plan-compaction.ts";

/** Counts how much a planned compaction removes and keeps. */
export interface PlannedSizes {
  /** Counts the messages that the summary replaces. */
  readonly removedMessages: number;
  /** Counts the messages that stay. */
  readonly keptMessages: number;
  /** Holds the size of the next request in tokens, without the compaction. */
  readonly tokensBefore: number;
}

/** Reports what happens to a session's summaries. An error that a listener throws is ignored. */
export type CompactionEvent =
  /** Reports the plan once: before the first model is asked, or when a summary needs no model. */
  | ({
      readonly name: "compaction.planned";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
    } & PlannedSizes)
  /** Reports a plan that replaces the reported one, because the cut moved or the session changed meanwhile. */
  | ({
      readonly name: "compaction.replanned";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
    } & PlannedSizes)
  /** Reports a source that gave no summary. The next source is tried. */
  | ({
      readonly name: "compaction.rung-failed";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
    } & FailedRung)
  /** Reports that the log contains the compaction. */
  | {
      readonly name: "compaction.applied";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the id of the compaction's record. */
      readonly recordId: string;
      /** States which source the summary came from. */
      readonly source: SummarySource;
      /** Names the summarizer that wrote the summary; null for a checkpoint and a stub. */
      readonly provider: string | null;
      /** States whether a model has yet to rewrite the summary. */
      readonly needsRetry: boolean;
      /** Counts the calls for the summary and their tokens; null when no provider stated them. */
      readonly usage: SummaryUsage | null;
      /** Holds the size of the next request in tokens, without the compaction. */
      readonly tokensBefore: number;
      /** Holds the estimated size of the next request in tokens. */
      readonly tokensAfter: number;
    }
  /** Reports that a summary could replace nothing. */
  | {
      readonly name: "compaction.nothing";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** States why there is nothing to replace. */
      readonly reason: NothingReason;
    }
  /** Reports that the summarized part changed or left the branch before the summary could be applied. */
  | {
      readonly name: "compaction.superseded";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
    }
  /** Reports a better summary that replaces one that was due for a retry. */
  | {
      readonly name: "retry.improved";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the id of the compaction whose summary was poorer. */
      readonly summaryId: string;
      /** States the form of the new text: a compaction, or a note while a turn is open or a newer summary exists. */
      readonly as: "compaction" | "note";
      /** Names the summarizer that wrote it; null when no record states it. */
      readonly provider: string | null;
      /** Counts the calls for it and their tokens; null when no provider stated them. */
      readonly usage: SummaryUsage | null;
    }
  /** Reports that a redaction reached the range of a summary, which the model therefore no longer receives. */
  | {
      readonly name: "summary.withheld";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the id of the compaction whose summary is withheld. */
      readonly summaryId: string;
    }
  /** Reports the stopgap that replaces a withheld summary and that no model wrote. */
  | {
      readonly name: "summary.replaced";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the id of the compaction whose summary was withheld. */
      readonly summaryId: string;
      /** States the form of the stopgap: a compaction, or a note beside the branch. */
      readonly as: "compaction" | "note";
    }
  /** Reports that no summarizer gave a better summary. */
  | {
      readonly name: "retry.failed";
      /** Holds the address of the session in the store. */
      readonly ref: SessionRef;
      /** Holds the id of the compaction whose summary is still poorer. */
      readonly summaryId: string;
      /** Counts the failed attempts so far. */
      readonly attempts: number;
      /** Holds the time of the next attempt in UTC milliseconds; null when no attempt is left and the summary stays. */
      readonly nextAtMs: number | null;
    };

/** Receives the events of the summaries in a store. */
export type CompactionListener = (event: CompactionEvent) => void;
