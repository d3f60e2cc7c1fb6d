/** A message of claw0's, as it hands it to Anthropic's SDK. */
export interface Claw0Message {
  readonly role: "user" | "assistant";
  readonly content: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** `_rebuild_history` of claw0's third lesson, statement by statement; Python's KeyError is thrown as an error. */
export function rebuildHistory(text: string): readonly Claw0Message[] {
  const messages: { role: "user" | "assistant"; content: unknown }[] = [];
  for (const line of text.trim().split("\n")) {
    const record = JSON.parse(line) as Fields;
    const last = messages.at(-1);
    switch (record["type"]) {
      case "user":
        messages.push({ role: "user", content: field(record, "content") });
        break;
      case "assistant": {
        const content = field(record, "content");
        messages.push({
          role: "assistant",
          content: typeof content === "string" ? [{ type: "text", text: content }] : content,
        });
        break;
      }
      case "tool_use": {
        const block = {
          type: "tool_use",
          id: field(record, "tool_use_id"),
          name: field(record, "name"),
          input: field(record, "input"),
        };
        if (last?.role === "assistant") (last.content as unknown[]).push(block);
        else messages.push({ role: "assistant", content: [block] });
        break;
      }
      case "tool_result": {
        const block = {
          type: "tool_result",
          tool_use_id: field(record, "tool_use_id"),
          content: field(record, "content"),
        };
        const isResults =
          last?.role === "user" &&
          Array.isArray(last.content) &&
          (last.content as readonly Fields[])[0]?.["type"] === "tool_result";
        if (isResults) (last.content as unknown[]).push(block);
        else messages.push({ role: "user", content: [block] });
        break;
      }
    }
  }
  return messages;
}

function field(record: Fields, name: string): unknown {
  if (!(name in record)) throw new Error(`KeyError: ${name}`);
  return record[name];
}

/**
 * Messages as Anthropic's API takes them, in one form: text as a block, messages of one role that follow each other as one,
 * and without `is_error`, which claw0 does not read.
 */
export function normalMessages(messages: readonly { readonly role: string; readonly content: unknown }[]): unknown[] {
  const normal: { role: string; content: unknown[] }[] = [];
  for (const { role, content } of messages) {
    const blocks = blocksOf(content).map(normalBlock);
    const last = normal.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else normal.push({ role, content: blocks });
  }
  return normal;
}

function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return (content ?? []) as readonly Fields[];
}

function normalBlock(block: Fields): Fields {
  if (block["type"] !== "tool_result") return block;
  const { is_error: _isError, content, ...rest } = block;
  return { ...rest, content: blocksOf(content) };
}
