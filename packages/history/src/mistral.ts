export { renderMistral } from "./render-mistral.ts";
export type { MistralCall, MistralChunk, MistralMessage } from "./render-mistral.ts";
export { validateMistral } from "./validate-mistral.ts";
export { recordFromReply, recordsFromMessages } from "./from-messages/mistral.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
