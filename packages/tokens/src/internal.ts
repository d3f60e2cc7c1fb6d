// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { createAheadCounter } from "./ahead-counter.ts";
export type { AheadCounter } from "./ahead-counter.ts";
export type { EstimateSource } from "./context-estimate.ts";
export { countByCharacterKind } from "./heuristic-count.ts";
export type { VocabularyName } from "./load-vocabulary.ts";
export type { Countable } from "./message-parts.ts";
export { modelProfile } from "./model-profile.ts";
export { isPossibleCount } from "./possible-count.ts";
export type { StaleReason } from "./occupancy.ts";
export { beginCycle, crossThresholds, freshThresholds, readThresholds, rearmThreshold } from "./threshold-crossings.ts";
export type { ThresholdPhase, ThresholdState } from "./threshold-crossings.ts";
export type { CountMethod } from "./token-counter.ts";
