export { renderBedrock } from "./render-bedrock.ts";
export type { BedrockBlock, BedrockMessage } from "./render-bedrock.ts";
export { validateBedrock } from "./validate-bedrock.ts";
export { recordFromReply, recordsFromMessages } from "./from-messages/bedrock.ts";
export type {
  MessageDraft,
  RecordFromReplyOptions,
  RecordsFromMessagesOptions,
} from "./from-messages/message-draft.ts";
