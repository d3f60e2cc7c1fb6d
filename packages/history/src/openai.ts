export { renderOpenAiChat } from "./render-openai-chat.ts";
export type { OpenAiChatCall, OpenAiChatMessage, OpenAiChatOptions, OpenAiChatPart } from "./render-openai-chat.ts";
export { renderOpenAiResponses } from "./render-openai-responses.ts";
export type { OpenAiResponsesItem, OpenAiResponsesPart } from "./render-openai-responses.ts";
export { validateOpenAiChat } from "./validate-openai-chat.ts";
export { validateOpenAiResponses } from "./validate-openai-responses.ts";
export type { ValidateOpenAiResponsesOptions } from "./validate-openai-responses.ts";
export { recordFromReply, recordsFromMessages } from "./from-messages/openai.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
