import { getSessionMessages, type SessionStore } from "@anthropic-ai/claude-agent-sdk";
import type { ReadSession } from "../read-units.ts";
import type { Fields } from "./lines.ts";

export type Lines = readonly Fields[];

/** What the Claude Agent SDK reads out of a session's lines: role and words of each message. */
export async function bySdk(lines: Lines): Promise<readonly string[]> {
  const store = { append: async () => {}, load: async () => lines } as unknown as SessionStore;
  const id = "89f4d66a-510b-48b3-94b8-d6a8f981b143";
  const messages = await getSessionMessages(id, { dir: "/nowhere", sessionStore: store });
  return messages.map(({ type, message }) => `${type}: ${words((message as { readonly content: unknown }).content)}`);
}

/** The same of what we read; the program shows its own words to nobody. */
export function byUs({ context }: ReadSession): readonly string[] {
  return context.messages
    .filter(({ role }) => role !== "custom")
    .map(({ role, content }) => `${role === "assistant" ? role : "user"}: ${words(content)}`);
}

function words(content: unknown): string {
  if (typeof content === "string") return content;
  return (content as readonly Fields[])
    .map((block) => {
      if (block["type"] === "tool_result") return words(block["content"]);
      if (block["type"] === "tool_use" || block["type"] === "toolCall") return `?${String(block["id"])}`;
      if (block["type"] === "thinking") return `(thinking ${String(block["thinking"])})`;
      return block["type"] === "text" ? block["text"] : `(${String(block["type"])})`;
    })
    .join(" ");
}
