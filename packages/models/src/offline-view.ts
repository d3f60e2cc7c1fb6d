import { isFields, type Fields } from "@throughline/core/internal";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** A call the model made for the newest request, and what came of it. */
export interface OfflineResult {
  readonly tool: string;
  readonly input: Fields;
  readonly isError: boolean;
  readonly text: string;
}

/** A conversation as the rules look at it. */
export interface OfflineView {
  /** What the user asked last. */
  readonly asked: string;
  /** A program asks whether there is something to store before the conversation is made smaller. */
  readonly isFlush: boolean;
  /** What was called for it, in the order of the results. */
  readonly results: readonly OfflineResult[];
  /** Earlier messages of the user, oldest first, and summaries of those that are no longer sent. */
  readonly earlier: readonly string[];
  /** Messages of the request, for ids that no other answer of this conversation has. */
  readonly messageCount: number;
}

/** Reads messages of Anthropic's shape. */
export function readOfflineView(messages: readonly unknown[]): OfflineView {
  const said: string[] = [];
  let flush: string | null = null;
  const calls = new Map<string, { readonly tool: string; readonly input: Fields }>();
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
      // The user's question stays the newest one, with what was called for it, while a program asks about memories.
      if (flushReminder.test(text)) flush = null;
      else if (flushQuestion.test(text)) flush = text;
      if (flushReminder.test(text) || flush === text) continue;
      flush = null;
      said.push(text);
      results = [];
    }
  }
  const asked = flush ?? said.at(-1) ?? "";
  const earlier = flush === null ? said.slice(0, -1) : said;
  return { asked, results, earlier, isFlush: flush !== null, messageCount: messages.length };
}

/** What a memory flush asks, by its words: whether there is something to store. */
const flushQuestion = /\bNO_REPLY\b|\bContext at \d{1,3} ?%/;
/** What follows a flush that was answered: the user's question is asked again. */
const flushReminder = /^\[SYSTEM: memory flush\]\nThe memory flush is over\b/;

function blocksOf(content: unknown): readonly Fields[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : fieldsOf(content);
}

function textOf(blocks: readonly Fields[]): string {
  return blocks.flatMap((block) => (block["type"] === "text" ? [textOr(block["text"], "")] : [])).join("\n");
}
