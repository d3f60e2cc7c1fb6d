// Functions that the packages of Throughline share. They may change in any release and are not public.
export type { UsageBlock } from "./usage-blocks.ts";
export type { UsageTotals } from "./usage-sums.ts";
