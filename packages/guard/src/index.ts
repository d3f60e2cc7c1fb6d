export { classifyOverflow } from "./classify-overflow.ts";
export type { ClassifyOptions, OverflowClassifier } from "./classify-overflow.ts";
export type { FailureCategory, OverflowClassification, OverflowKind } from "./overflow.ts";
export { applyChanges } from "./apply-changes.ts";
export type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
export { guardCall } from "./guard-call.ts";
export { createGuardTurn } from "./guard-options.ts";
export type {
  CallContext,
  CompactionRequest,
  CompactMessages,
  CountRequest,
  GuardAttempt,
  GuardedRequest,
  GuardEvent,
  GuardOptions,
  GuardOutcome,
  GuardRequest,
  GuardTurn,
} from "./guard-options.ts";
export { learnLimits, limitsOf, nothingLearned, readLimits } from "./learned-limits.ts";
export type { LearnedLimits, ModelLimits } from "./learned-limits.ts";
export { ollamaRequestFields, ollamaWindowTokens, readOllamaWindow } from "./ollama.ts";
export { compactInFlight } from "./compact-in-flight.ts";
export type { CompactInFlightOptions, InFlightSummaryRequest } from "./compact-in-flight.ts";
export { guardApiCall } from "./guard-api-call.ts";
export type { ApiCallRequest, GuardApiCallOptions } from "./guard-api-call.ts";
export { modelFailure } from "./model-failure.ts";
export { safePromptTokens } from "./request-size.ts";
export { resultLimitsFor } from "./result-limits.ts";
export type { ResultSettings } from "./result-limits.ts";
export type { OllamaWindow } from "./ollama.ts";
export type { ReplyFacts } from "./read-reply.ts";
export type { GuardState, GuardStep, Remedy } from "./guard-steps.ts";
export type { ResultLimits } from "./truncate-results.ts";
export { recoveryAction } from "./recovery-action.ts";
