import type { AssistantMessage, Message, RecordDraft, ToolCallBlock } from "@throughline/core";

export function toolCallsOf({ content }: AssistantMessage): readonly ToolCallBlock[] {
  return Array.isArray(content) ? content.filter((block): block is ToolCallBlock => block.type === "toolCall") : [];
}

export function messageDraft(message: Message): RecordDraft {
  return { type: "message", message };
}
