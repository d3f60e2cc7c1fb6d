export { openUsage } from "./open-usage.ts";
export type { UsageKey, UsageOptions, UsageQuery, UsageReader, UsageReport, UsageRow } from "./open-usage.ts";
