// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { readCompactionDetails } from "./compaction-details.ts";
export { compactionNeed, settingsForWindow } from "./compaction-settings.ts";
export type { SettingRepair } from "./compaction-settings.ts";
export type { TokenMeasure } from "./compaction-work.ts";
export { tokenMeasure } from "./compactor.ts";
export { extractDetails } from "./extract-details.ts";
export { planCompaction } from "./plan-compaction.ts";
export type { CompactionInput, CompactionPlan, NothingReason, NothingToCompact } from "./plan-compaction.ts";
export { readRetries } from "./retry-entry.ts";
export { compactionSettings } from "./settings.ts";
export { summaryText } from "./summary-text.ts";
