export { readUsage } from "./call-usage.ts";
export type { CallUsage } from "./call-usage.ts";
export { recordUsage } from "./record-usage.ts";
