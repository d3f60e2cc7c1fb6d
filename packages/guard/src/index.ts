export { applyChanges } from "./apply-changes.ts";
export { classifyOverflow } from "./classify-overflow.ts";
export type { ClassifyOptions } from "./classify-overflow.ts";
export { compactInFlight } from "./compact-in-flight.ts";
export type { CompactInFlightOptions } from "./compact-in-flight.ts";
export { guardApiCall } from "./guard-api-call.ts";
export type { ApiCallRequest, GuardApiCallOptions } from "./guard-api-call.ts";
export { guardCall } from "./guard-call.ts";
export type { GuardChange } from "./guard-change.ts";
export { createGuardTurn } from "./guard-options.ts";
export type {
  CompactionRequest,
  GuardedRequest,
  GuardEvent,
  GuardOptions,
  GuardOutcome,
  GuardRequest,
  GuardTurn,
} from "./guard-options.ts";
export { learnLimits, limitsOf, readLimits } from "./learned-limits.ts";
export type { LearnedLimits } from "./learned-limits.ts";
export { ollamaRequestFields, ollamaWindowTokens, readOllamaWindow } from "./ollama.ts";
export { modelFailure } from "./model-failure.ts";
export type { OverflowClassification } from "./overflow.ts";
export { recoveryAction } from "./recovery-action.ts";
