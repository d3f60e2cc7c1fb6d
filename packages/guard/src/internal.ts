// Functions that the packages of Throughline share. They may change in any release and are not public.
export { applyChanges } from "./apply-changes.ts";
export { compactInFlight } from "./compact-in-flight.ts";
export type { CompactInFlightOptions } from "./compact-in-flight.ts";
export type { GuardChange } from "./guard-change.ts";
export { createGuardTurn } from "./guard-options.ts";
export type { CompactionRequest, GuardEvent, GuardTurn, GuardedRequest } from "./guard-options.ts";
export { limitsOf, nothingLearned, readLimits } from "./learned-limits.ts";
export type { LearnedLimits } from "./learned-limits.ts";
export { modelFailure } from "./model-failure.ts";
export { ollamaRequestFields, ollamaWindowTokens, readOllamaWindow } from "./ollama.ts";
export type { OverflowKind } from "./overflow.ts";
export { recoveryAction } from "./recovery-action.ts";
export { safePromptTokens } from "./request-size.ts";
export { resultLimitsFor } from "./result-limits.ts";
export type { ResultSettings } from "./result-limits.ts";
