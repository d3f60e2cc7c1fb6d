export { listBranches } from "./list-branches.ts";
export type { Branch } from "./list-branches.ts";
export { contextFromSeq, planRetry, planRewind, planUndo } from "./plan-rewind.ts";
export type { RewindPlan, TurnPlan } from "./plan-rewind.ts";
