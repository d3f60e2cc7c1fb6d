export { buildContext } from "./build-context.ts";
export type { BuildContextOptions, Context } from "./build-context.ts";
export { readSummaryText, summaryPrefixes } from "./message-texts.ts";
export type { NeutralBlock, NeutralMessage } from "./neutral-message.ts";
export type { OmitReason, OmittedRange } from "./omitted-ranges.ts";
export { renderAnthropic } from "./render-anthropic.ts";
export type {
  AnthropicBlock,
  AnthropicMessage,
  AnthropicRendering,
  AnthropicRenderOptions,
  AnthropicResultBlock,
  AnthropicText,
} from "./render-anthropic.ts";
export type { Rendering } from "./replay-history.ts";
export type { RenderOptions } from "./render-options.ts";
export { renderText, renderTextPieces } from "./render-text.ts";
export type { RenderTextOptions } from "./render-text.ts";
export type { Repair, RepairRule } from "./repair.ts";
export { validateAnthropic } from "./validate-anthropic.ts";
export type { ValidateAnthropicOptions } from "./validate-anthropic.ts";
export type { Violation } from "./violation.ts";
export { walkBranch } from "./walk-branch.ts";
export type { BranchWalk } from "./walk-branch.ts";
