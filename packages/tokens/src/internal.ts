// Functions that the packages of Throughline share. They may change in any release and are not public.
export { createAheadCounter } from "./ahead-counter.ts";
export type { AheadCounter } from "./ahead-counter.ts";
export { calibratedFactor, readCalibration } from "./calibration.ts";
export type { Calibration } from "./calibration.ts";
export { breakDown, shareTokens } from "./context-breakdown.ts";
export type { ContextBreakdown } from "./context-breakdown.ts";
export { contextReport } from "./gauge-text.ts";
export { countByCharacterKind } from "./heuristic-count.ts";
export type { ModelName } from "./model-name.ts";
export type { Actual } from "./occupancy.ts";
export { isPossibleCount } from "./possible-count.ts";
export { promptSteps } from "./price-snapshot.ts";
export { pricesAsOf } from "./price-table.ts";
export type { ModelPrices } from "./price-table.ts";
export { addSpend, costOf } from "./spend.ts";
export { beginCycle, crossThresholds, freshThresholds, readThresholds, rearmThreshold } from "./threshold-crossings.ts";
export type { ThresholdPhase, ThresholdState } from "./threshold-crossings.ts";
export type { CountMethod, TokenCounter } from "./token-counter.ts";
