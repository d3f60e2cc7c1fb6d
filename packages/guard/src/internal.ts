// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { CallContext } from "./guard-options.ts";
export { nothingLearned } from "./learned-limits.ts";
export type { OverflowKind } from "./overflow.ts";
export { safePromptTokens } from "./request-size.ts";
export { resultLimitsFor } from "./result-limits.ts";
export type { ResultSettings } from "./result-limits.ts";
