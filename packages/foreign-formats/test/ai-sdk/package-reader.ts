import { convertToModelMessages, validateUIMessages, type UIMessage } from "ai";
import type { ReadSession } from "../read-units.ts";

export type Part = Readonly<Record<string, unknown>>;

/** What the package would send of the messages: role and words of each. */
export async function byPackage(messages: readonly object[]): Promise<readonly string[]> {
  const given = (await validateUIMessages({ messages: messages as UIMessage[] })) as UIMessage[];
  return (await convertToModelMessages(given)).map(({ role, content }) => `${role}: ${words(content)}`);
}

function words(content: unknown): string {
  if (typeof content === "string") return content;
  return (content as readonly Part[]).map(word).join(" ");
}

function word(part: Part): string {
  const { type, text, toolCallId, output, data, image } = part;
  if (type === "text") return String(text);
  if (type === "reasoning") return `(${String(text)})`;
  if (type === "tool-call") return `?${String(toolCallId)}`;
  if (type === "tool-result") {
    const { value } = output as { readonly value: unknown };
    return `=${String(toolCallId)} ${typeof value === "string" ? value : JSON.stringify(value)}`;
  }
  return `[${String(type)} ${String(data ?? image)}]`;
}

/** The same of what was read. Results of one reply are one message there. */
export function byUs({ context }: ReadSession): readonly string[] {
  const found: { readonly role: string; readonly words: string[] }[] = [];
  for (const message of context.messages) {
    const role = message.role === "toolResult" ? "tool" : message.role;
    const said = message.content.map((block) => {
      if (block.type === "text")
        return message.role === "toolResult" ? `=${message.toolCallId} ${block.text}` : block.text;
      if (block.type === "thinking") return `(${block.thinking})`;
      if (block.type === "toolCall") return `?${block.id}`;
      if (block.type !== "image") return `[${block.type}]`;
      const { url, media_type: mediaType, data } = block.source ?? {};
      return `[file ${String(url ?? `data:${String(mediaType)};base64,${String(data)}`)}]`;
    });
    const last = found.at(-1);
    if (role === "tool" && last?.role === role) last.words.push(...said);
    else found.push({ role, words: said });
  }
  return found.map(({ role, words: all }) => `${role}: ${all.join(" ")}`);
}
