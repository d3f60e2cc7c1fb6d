export { classifyOverflow } from "./classify-overflow.ts";
export { guardApiCall } from "./guard-api-call.ts";
export { guardCall } from "./guard-call.ts";
export type { GuardOptions, GuardOutcome, GuardRequest } from "./guard-options.ts";
export type { OverflowClassification } from "./overflow.ts";
