import { isFields, type Fields } from "@throughline/core/internal";
import { fieldsOf, textOr } from "./wire-fields.ts";

export interface OfflineResult {
  readonly tool: string;
  readonly input: Fields;
  readonly isError: boolean;
  readonly text: string;
}

export interface OfflineView {
  readonly asked: string;
  /** Is true when a program asks for a memory flush before it compacts the conversation. */
  readonly isFlush: boolean;
  readonly results: readonly OfflineResult[];
  /** Lists earlier messages of the user, oldest first, and summaries of messages that are no longer sent. */
  readonly earlier: readonly string[];
  /**
   * Counts the messages of the request. Call ids include the count, so that no other answer of the conversation repeats
   * them.
   */
  readonly messageCount: number;
}

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
      // Each block counts separately, because one message may hold a summary and the question after it.
      const text = textOf([block]).trim();
      if (text === "") continue;
      // During a memory flush the user's question and its results stay the newest, because the program asks the
      // question again later.
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

/** A memory flush has no other mark, so the words of its question identify it. */
const flushQuestion = /\bNO_REPLY\b|\bContext at \d{1,3} ?%/;
/** This text follows an answered flush. After it the program asks the user's question again. */
const flushReminder = /^\[SYSTEM: memory flush\]\nThe memory flush is over\b/;

function blocksOf(content: unknown): readonly Fields[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : fieldsOf(content);
}

function textOf(blocks: readonly Fields[]): string {
  return blocks.flatMap((block) => (block["type"] === "text" ? [textOr(block["text"], "")] : [])).join("\n");
}
