import type { Fields } from "@throughline/core/internal";
import { callsOf } from "../mapped-messages.ts";

/** A call that no result has answered yet. */
export interface OpenCall {
  readonly id: string;
  readonly name: string;
}

/** The mark between the name of a tool with its arguments, and its result. */
const resultMark = "] Result:";
/** A command or a search stands before the mark. */
const longestTitle = 20_000;

/** The calls of a reply, in order. */
export function callsOfBlocks(blocks: readonly Fields[]): readonly OpenCall[] {
  const calls = blocks.filter(({ type }) => type === "tool_use");
  return callsOf(calls.map(({ id, name }) => ({ type: "toolCall", id, name })));
}

/**
 * The blocks of a message with results where the program wrote texts: `[read_file for 'a.txt'] Result:` and the result, or the
 * result in the next block. A text answers the first open call of its tool. Results come first, as in a request.
 */
export function withResults(blocks: readonly Fields[], calls: readonly OpenCall[]): readonly Fields[] {
  const answered = new Set(blocks.flatMap(({ tool_use_id: id }) => (typeof id === "string" ? [id] : [])));
  const open = calls.filter(({ id }) => !answered.has(id));
  const results: Fields[] = [];
  const others: Fields[] = [];
  for (let at = 0; at < blocks.length; at++) {
    const block = blocks[at] as Fields;
    const found = resultIn(block["text"], open);
    if (found === null) {
      (block["type"] === "tool_result" ? results : others).push(block);
      continue;
    }
    open.splice(open.indexOf(found.call), 1);
    const next = blocks[at + 1];
    const isInNext = found.text === "" && next !== undefined && isContent(next, open);
    if (isInNext) at += 1;
    results.push({ type: "tool_result", tool_use_id: found.call.id, content: isInNext ? [next] : found.text });
  }
  return [...results, ...others];
}

function resultIn(text: unknown, open: readonly OpenCall[]): { readonly call: OpenCall; readonly text: string } | null {
  if (typeof text !== "string" || !text.startsWith("[")) return null;
  const end = text.slice(0, longestTitle).indexOf(resultMark);
  const call = end < 0 ? undefined : open.find(({ name }) => isTitleOf(text, name));
  return call === undefined ? null : { call, text: text.slice(end + resultMark.length).trim() };
}

/** Whether a text begins with a tool's name in brackets, with or without its arguments. */
function isTitleOf(text: string, name: string): boolean {
  if (name === "" || !text.startsWith(name, 1)) return false;
  const behind = text[name.length + 1];
  return behind === "]" || behind === " ";
}

/** Whether a block is a result by itself: no title of another one, and nothing the program adds to every message. */
function isContent({ type, text }: Fields, open: readonly OpenCall[]): boolean {
  if (typeof text !== "string") return type === "image";
  return resultIn(text, open) === null && !/^\s{0,9}<(?:environment_details|feedback|task|user_message)>/.test(text);
}
