export { buildContext } from "./build-context.ts";
export type { BuildContextOptions, Context } from "./build-context.ts";
export { createHistory } from "./create-history.ts";
export type { History, HistoryOptions } from "./create-history.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
export { historyTargets } from "./history-targets.ts";
export type { HistoryTarget } from "./history-targets.ts";
export { limitContext } from "./limit-context.ts";
export type { LimitedContext } from "./limit-context.ts";
export { listBranches } from "./list-branches.ts";
export type { Branch } from "./list-branches.ts";
export { readSummaryText } from "./message-texts.ts";
export type { NeutralBlock, NeutralMessage } from "./neutral-message.ts";
export type { OmittedRange } from "./omitted-ranges.ts";
export { contextFromSeq, planRetry, planRewind, planUndo } from "./plan-rewind.ts";
export type { RewindPlan, TurnPlan } from "./plan-rewind.ts";
export type { TargetName } from "./provider-mappings.ts";
export type { RenderOptions } from "./render-options.ts";
export { renderText, renderTextPieces } from "./render-text.ts";
export type { RenderTextOptions } from "./render-text.ts";
export type { Repair, RepairRule } from "./repair.ts";
export type { Rendering } from "./replay-history.ts";
export { truncateResults } from "./truncate-results.ts";
export type { TruncatedContext } from "./truncate-results.ts";
export type { Violation } from "./violation.ts";
export type { ContextLimit, WindowCut } from "./window-cutter.ts";
export { walkBranch } from "./walk-branch.ts";
