import type { Fields } from "@throughline/core/internal";
import { callsOf } from "../mapped-messages.ts";

export interface OpenCall {
  readonly id: string;
  readonly name: string;
}

const resultMark = "] Result:";
/** The title before the mark may hold a whole command or search, so it is long. */
const longestTitle = 20_000;

export function callsOfBlocks(blocks: readonly Fields[]): readonly OpenCall[] {
  const calls = blocks.filter(({ type }) => type === "tool_use");
  return callsOf(calls.map(({ id, name }) => ({ type: "toolCall", id, name })));
}

/**
 * Converts the program's texts to results. A text is `[read_file for 'a.txt'] Result:` and the result, or the result in
 * the next block. The text answers the first open call of its tool. Results come first, because a request has them
 * first.
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

function isTitleOf(text: string, name: string): boolean {
  if (name === "" || !text.startsWith(name, 1)) return false;
  const behind = text[name.length + 1];
  return behind === "]" || behind === " ";
}

/**
 * The next block is the result unless it is the title of another result, or a text that the program adds to every
 * message.
 */
function isContent({ type, text }: Fields, open: readonly OpenCall[]): boolean {
  if (typeof text !== "string") return type === "image";
  return resultIn(text, open) === null && !/^\s{0,9}<(?:environment_details|feedback|task|user_message)>/.test(text);
}
