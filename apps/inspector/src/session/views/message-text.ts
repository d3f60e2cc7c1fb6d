/** Returns what a message of any provider's shape says: its texts as they are, everything else as JSON. */
export function textOfMessage(message: Readonly<Record<string, unknown>>): string {
  const content = message["content"] ?? message["parts"] ?? message["summary"];
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(message, null, 1);
  return content.map(textOfBlock).join("\n");
}

function textOfBlock(block: unknown): string {
  if (typeof block === "string") return block;
  if (typeof block !== "object" || block === null) return String(block);
  const { text, thinking } = block as { readonly text?: unknown; readonly thinking?: unknown };
  if (typeof text === "string") return text;
  return typeof thinking === "string" ? thinking : JSON.stringify(block, null, 1);
}
