// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { HistoryWork } from "./create-history.ts";
export type { HistoryWindow } from "./growing-window.ts";
export { summaryPrefixes } from "./message-texts.ts";
export { TitleFinder, titleOf } from "./title-of.ts";
export type { OmitReason } from "./omitted-ranges.ts";
export type { Truncation } from "./truncate-results.ts";
export { renderSteps, renderWith } from "./replay-history.ts";
export { contextSteps } from "./build-context.ts";
export { limitSteps } from "./limit-context.ts";
export { validationSteps } from "./history-targets.ts";
export { rewindSteps } from "./plan-rewind.ts";
export { walkSteps } from "./walk-branch.ts";
export type { ProviderMapping } from "./replay-history.ts";
export { madeUpTexts } from "./replay-rules.ts";
export type { ProviderRules } from "./replay-rules.ts";
export type {
  AssistantTurn,
  ReplayResult,
  ReplaySource,
  ReplayTurn,
  ReplayUserBlock,
  UserTurn,
} from "./replay-turn.ts";
export { providerMappings } from "./provider-mappings.ts";
