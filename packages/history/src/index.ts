export { buildContext } from "./build-context.ts";
export type { BuildContextOptions, Context } from "./build-context.ts";
export { readSummaryText, summaryPrefixes } from "./message-texts.ts";
export type { NeutralBlock, NeutralMessage } from "./neutral-message.ts";
export type { OmitReason, OmittedRange } from "./omitted-ranges.ts";
export { walkBranch } from "./walk-branch.ts";
export type { BranchWalk } from "./walk-branch.ts";
