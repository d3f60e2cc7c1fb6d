import { fieldsOf, isFields, textOr, type WireFields } from "./wire-fields.ts";

/** A call the model made for the newest request, and what came of it. */
export interface OfflineResult {
  readonly tool: string;
  readonly input: WireFields;
  readonly isError: boolean;
  readonly text: string;
}

/** A conversation as the rules look at it. */
export interface OfflineView {
  /** What the user asked last. */
  readonly asked: string;
  /** What was called for it, in the order of the results. */
  readonly results: readonly OfflineResult[];
  /** What the user said before, oldest first; summaries of what is no longer sent are among it. */
  readonly earlier: readonly string[];
  /** Messages of the request, for ids that no other answer of this conversation has. */
  readonly messageCount: number;
}

/** Reads messages of Anthropic's shape. */
export function readOfflineView(messages: readonly unknown[]): OfflineView {
  const said: string[] = [];
  const calls = new Map<string, { readonly tool: string; readonly input: WireFields }>();
  let results: OfflineResult[] = [];
  for (const message of messages.filter(isFields)) {
    const blocks = blocksOf(message["content"]);
    if (message["role"] === "assistant") {
      for (const { type, id, name, input } of blocks) {
        if (type === "tool_use") calls.set(String(id), { tool: String(name), input: isFields(input) ? input : {} });
      }
      continue;
    }
    for (const block of blocks) {
      const call = block["type"] === "tool_result" ? calls.get(String(block["tool_use_id"])) : undefined;
      if (call !== undefined) {
        results.push({ ...call, isError: block["is_error"] === true, text: textOf(blocksOf(block["content"])) });
      }
      // Each on its own: a summary and the question behind it may stand in one message.
      const text = textOf([block]).trim();
      if (text === "") continue;
      said.push(text);
      results = [];
    }
  }
  return { asked: said.at(-1) ?? "", results, earlier: said.slice(0, -1), messageCount: messages.length };
}

function blocksOf(content: unknown): readonly WireFields[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : fieldsOf(content);
}

function textOf(blocks: readonly WireFields[]): string {
  return blocks.flatMap((block) => (block["type"] === "text" ? [textOr(block["text"], "")] : [])).join("\n");
}
