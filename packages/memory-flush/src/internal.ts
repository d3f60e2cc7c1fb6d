// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { FlushThreshold } from "./flush-settings.ts";
export type { FlushPhase } from "./flush-steps.ts";
export { isMemoryPath } from "./observe-flush.ts";
export type { ObservedCall } from "./observe-flush.ts";
export type { ThresholdRepair } from "./reachable-thresholds.ts";
export { memoryFlushSettings } from "./settings.ts";
