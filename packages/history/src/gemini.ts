export { renderGemini } from "./render-gemini.ts";
export type { GeminiContent, GeminiPart, GeminiPartData } from "./render-gemini.ts";
export { validateGemini } from "./validate-gemini.ts";
export type { ValidateGeminiOptions } from "./validate-gemini.ts";
export { recordFromReply, recordsFromMessages } from "./from-messages/gemini.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
