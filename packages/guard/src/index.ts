export { classifyOverflow } from "./classify-overflow.ts";
export type { ClassifyOptions, OverflowClassifier } from "./classify-overflow.ts";
export type { FailureCategory, OverflowClassification, OverflowKind } from "./overflow.ts";
