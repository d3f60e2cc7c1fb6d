import type { AssistantMessage, Message, RecordDraft, StoredRecord, ToolCallBlock } from "@throughline/core";
import { isFields } from "@throughline/core/internal";

/** Returns whether a record is a reply of the model. */
export function isReply({ side, record }: StoredRecord): boolean {
  const { type, message } = record;
  return !side && type === "message" && isFields(message) && message["role"] === "assistant";
}

export function lastReply(messages: readonly Message[]): AssistantMessage | undefined {
  return messages.findLast((message): message is AssistantMessage => message.role === "assistant");
}

export function toolCallsOf({ content }: AssistantMessage): readonly ToolCallBlock[] {
  return Array.isArray(content) ? content.filter((block): block is ToolCallBlock => block.type === "toolCall") : [];
}

export function messageDraft(message: Message): RecordDraft {
  return { type: "message", message };
}
