export { renderAnthropic } from "./render-anthropic.ts";
export type {
  AnthropicBlock,
  AnthropicMessage,
  AnthropicRendering,
  AnthropicRenderOptions,
  AnthropicResultBlock,
  AnthropicText,
} from "./render-anthropic.ts";
export { validateAnthropic } from "./validate-anthropic.ts";
export type { ValidateAnthropicOptions } from "./validate-anthropic.ts";
export { recordFromReply, recordsFromMessages } from "./from-messages/anthropic.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
