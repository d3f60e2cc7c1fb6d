export { recordFromReply, recordsFromMessages } from "./from-messages/anthropic.ts";
export { renderAnthropic } from "./render-anthropic.ts";
export type {
  AnthropicBlock,
  AnthropicMessage,
  AnthropicRendering,
  AnthropicRenderOptions,
  AnthropicResultBlock,
} from "./render-anthropic.ts";
export { validateAnthropic } from "./validate-anthropic.ts";
export type { ValidateAnthropicOptions } from "./validate-anthropic.ts";
