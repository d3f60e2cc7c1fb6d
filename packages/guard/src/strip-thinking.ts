import type { ModelName } from "@throughline/tokens";
import { isFields } from "./message-slots.ts";

const thinkingTypes: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

/**
 * True for the Claude models whose signatures cover everything before the thinking: Fable and Mythos from 5.1, the
 * others from 5.5. They refuse a request in which something before a signed block was changed.
 */
export function bindsThinking({ modelId }: ModelName): boolean {
  const [, family = "", major, minor] =
    /claude-([a-z]+)-(\d+)(?:[.-](\d{1,2})(?!\d))?/.exec(modelId.toLowerCase()) ?? [];
  const version = Number(major ?? 0) * 100 + Number(minor ?? 0);
  return version >= (family === "fable" || family === "mythos" ? 501 : 505);
}

/** Takes signed thinking out of the replies from a message on. What a model said stays. */
export function stripThinking(messages: readonly unknown[], fromIndex: number): readonly unknown[] {
  return messages.map((message, index) => {
    if (index < fromIndex || !isFields(message) || message["role"] !== "assistant") return message;
    const content: unknown = message["content"];
    if (!Array.isArray(content)) return message;
    const kept = content.filter((block: unknown) => !isFields(block) || !thinkingTypes.has(block["type"]));
    if (kept.length === content.length) return message;
    return { ...message, content: kept.length > 0 ? kept : [{ type: "text", text: "[thinking left out]" }] };
  });
}
