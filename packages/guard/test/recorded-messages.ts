import { readFileSync } from "node:fs";

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly arguments?: unknown;
}

interface RecordedMessage {
  readonly role: string;
  readonly content?: string | readonly Block[];
  readonly toolCallId?: string;
  readonly stopReason?: string;
}

function textOf(content: RecordedMessage["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text }) => text ?? "").join("");
}

/**
 * The messages of a recorded conversation for Anthropic: failed replies and calls that were never answered are left
 * out, and so is thinking. Enough for measuring sizes; `history` does it properly.
 */
export function recordedMessages(path: string): readonly object[] {
  const records = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; message?: RecordedMessage });
  const messages = records.flatMap(({ message }) => (message === undefined ? [] : [message]));
  const answered = new Set(messages.flatMap(({ toolCallId }) => toolCallId ?? []));
  const made = new Set<string>();
  const list: { role: string; content: object[] }[] = [];
  const add = (role: string, blocks: object[]): void => {
    if (blocks.length === 0) return;
    const last = list.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else list.push({ role, content: blocks });
  };
  for (const { role, content, toolCallId, stopReason } of messages) {
    if (role === "user" && textOf(content) !== "") add("user", [{ type: "text", text: textOf(content) }]);
    if (role === "toolResult" && toolCallId !== undefined && made.delete(toolCallId))
      add("user", [{ type: "tool_result", tool_use_id: toolCallId, content: textOf(content) }]);
    if (role !== "assistant" || stopReason === "aborted" || stopReason === "error" || !Array.isArray(content)) continue;
    const blocks = (content as readonly Block[]).flatMap((block): object[] => {
      if (block.type === "text" && block.text) return [{ type: "text", text: block.text }];
      if (block.type !== "toolCall" || block.id === undefined || !answered.has(block.id)) return [];
      made.add(block.id);
      return [{ type: "tool_use", id: block.id, name: block.name, input: block.arguments ?? {} }];
    });
    add("assistant", blocks);
  }
  return list[0]?.role === "user" ? list : list.slice(1);
}
