export { emptyCalibration, observe } from "./calibration.ts";
export { estimateContext } from "./context-estimate.ts";
export type { ContextEstimate } from "./context-estimate.ts";
export { contextLine } from "./gauge-text.ts";
export { gaugeOf } from "./gauge.ts";
export type { Gauge } from "./gauge.ts";
export { lastActual } from "./occupancy.ts";
export { createTokenEstimator } from "./token-estimator.ts";
export type { TokenEstimator, TokenEstimatorOptions } from "./token-estimator.ts";
