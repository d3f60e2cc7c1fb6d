// Functions that the packages of Throughline share. They may change in any release and are not public.
export { readKeptUsage } from "./kept-usage.ts";
export type { RecentUsage } from "./kept-usage.ts";
export type { SessionActivity, UsageKey, UsageOptions, UsageQuery, UsageReader, UsageRow } from "./open-usage.ts";
export { SessionUsageSum } from "./turn-usage.ts";
export type { SessionUsage, TurnUsage } from "./turn-usage.ts";
export { createUsageQueue } from "./usage-queue.ts";
export type { UsageQueue } from "./usage-queue.ts";
export type { UsageTotals } from "./usage-sums.ts";
