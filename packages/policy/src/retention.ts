export { applyRetention, readRetained } from "./apply-retention.ts";
export type { AppliedStep, ApplyRetentionOptions, ReadRetainedOptions, StoredSession } from "./apply-retention.ts";
