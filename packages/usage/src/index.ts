export { openUsage } from "./open-usage.ts";
export type { UsageReport } from "./open-usage.ts";
