export type { CallActual, CallFacts, CallOutcome, CallSplice } from "./call-record.ts";
export { explainCalls, readHistoryCut } from "./explain-calls.ts";
export type { ExplainedCall, ExplainedChange } from "./explain-calls.ts";
export { readCalls } from "./read-calls.ts";
export type { CallQuery, ReadCallsOptions } from "./read-calls.ts";
export { rebuildCall } from "./rebuild-call.ts";
export type { CallPrefix, RebuiltCall } from "./rebuild-call.ts";
