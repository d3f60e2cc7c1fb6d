import type { NeutralMessage } from "@throughline/history/internal";
import { isFields, type Fields } from "@throughline/core/internal";
import { finishReason } from "./attribute-names.ts";

export function inputMessages(messages: readonly NeutralMessage[]): string {
  // The message interfaces have no index signature, so they need a cast.
  return JSON.stringify(messages.map(({ role, ...message }) => messageOf(roleOf(role), message as unknown as Fields)));
}

export function outputMessages(message: Fields): string {
  const finish_reason = finishReason(message["stopReason"]) ?? "stop";
  return JSON.stringify([{ ...messageOf("assistant", message), finish_reason }]);
}

/** Blocks that are not text appear by their type, because a span holds text only. */
export function resultText({ content }: Fields): string {
  return blocksOf(content)
    .map(({ type, text }) => (type === "text" && typeof text === "string" ? text : `[${String(type)}]`))
    .join("\n");
}

export function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isFields) : [];
}

function roleOf(role: string): string {
  return role === "toolResult" ? "tool" : role;
}

function messageOf(role: string, message: Fields): Fields {
  if (role === "tool") {
    const response = { type: "tool_call_response", id: message["toolCallId"], response: resultText(message) };
    return { role, parts: [response] };
  }
  return { role, parts: blocksOf(message["content"]).map(partOf) };
}

/** Images and files appear by their type only, because their data would make the span too large. */
function partOf({ type, text, thinking, id, name, arguments: given }: Fields): Fields {
  switch (type) {
    case "text":
      return { type: "text", content: text };
    case "thinking":
      return { type: "reasoning", content: thinking };
    case "toolCall":
      return { type: "tool_call", id, name, arguments: given };
    default:
      return { type: String(type) };
  }
}
