export { compactionNeed, settingsForWindow } from "./compaction-settings.ts";
export type { CompactionNeed, CompactionSettings, EffectiveSettings, SettingRepair } from "./compaction-settings.ts";
export { readCompactionDetails } from "./compaction-details.ts";
export type { CompactionDetails, ExtractedDetails, SummarySource, SummaryUsage } from "./compaction-details.ts";
export { planCompaction } from "./plan-compaction.ts";
export type {
  CompactionInput,
  CompactionPlan,
  NothingReason,
  NothingToCompact,
  PreviousSummary,
} from "./plan-compaction.ts";
export { extractDetails } from "./extract-details.ts";
export type { ExtractOptions } from "./extract-details.ts";
export { summaryText } from "./summary-text.ts";
export type { SummaryTextOptions } from "./summary-text.ts";
export { applyCompaction } from "./apply-compaction.ts";
export type { ApplyOptions, ApplyOutcome } from "./apply-compaction.ts";
export type { PreparedCompaction } from "./prepare-compaction.ts";
export type { BackgroundCompaction, CompactionResult } from "./background-compaction.ts";
export type { CompactionEvent, CompactionListener } from "./compaction-event.ts";
export type { CompactionState } from "./compaction-steps.ts";
export type { FailedRung } from "./find-summary.ts";
export { createCompactor, tokenMeasure } from "./compactor.ts";
export type { CompactionRequest, Compactor, CompactorOptions } from "./compactor.ts";
export type { CompactionWay, TokenMeasure } from "./compaction-work.ts";
export { createEntryLease } from "./retry-lease.ts";
export type { EntryLeaseOptions, RetryLease } from "./retry-lease.ts";
export { runRetryLoop } from "./retry-loop.ts";
export type { RetryLoopOptions } from "./retry-loop.ts";
export { readRetries } from "./retry-entry.ts";
export type { PendingRetry } from "./retry-entry.ts";
export type { RetryLimits } from "./retry-steps.ts";
export { createSummaryRetry } from "./retry-summaries.ts";
export type { RetryOutcome, RetryRun, SummaryRetry, SummaryRetryOptions } from "./retry-summaries.ts";
