import { endOfValue } from "./end-of-value.ts";
import { linearExpression, type LinearExpression } from "./linear/linear-expression.ts";

/**
 * Models and the servers before them put these marks around a call. Only prose about the marks contains them otherwise.
 */
const marks: readonly LinearExpression[] = [
  linearExpression(String.raw`<\/?(?:[\w-]+:)?(?:tool_calls?|tool_use|function_calls?|invoke|tool_code)\b`),
  linearExpression(String.raw`<function=[\w.-]+>`),
  linearExpression(String.raw`<[|｜](?:tool|python_tag|function|plugin|action)`),
  linearExpression(String.raw`\[TOOL_CALLS?\]|✿FUNCTION✿`),
  linearExpression("^```tool_(?:code|call)\\b", "m"),
  linearExpression(String.raw`\bto=functions\.\w`),
  linearExpression(String.raw`^[ \t]*(?:functions|default_api)\.\w+\s*\(`, "m"),
  linearExpression(String.raw`\bprint\(default_api\.\w+\(`),
  linearExpression(String.raw`^Action:[^\n]+\n+Action Input:`, "m"),
];

/**
 * Matches an object, at the start of a line or of a fence, that names a tool and gives it arguments. Models use any
 * quotes or none.
 */
const namedFirst = linearExpression(
  String.raw`^[ \t]*(?:\x60\x60\x60\w*[ \t]*\n\s*)?[[{][\s[{]*(?:["'](?:type|id)["']\s*:\s*["'][^"'\n]*["']\s*,\s*|["']?(?:tool_calls?|function(?:_call)?|action)["']?\s*:\s*[[{\s]+)*["']?(?:name|tool|tool_name|function|action|recipient_name)["']?\s*:\s*["']?[\w./-]+["']?\s*,\s*(?:["']\w+["']\s*:\s*["'][^"'\n]*["']\s*,\s*)*["']?(?:arguments|parameters|input|args|params|tool_input|action_input)["']?\s*:`,
  "m",
);
const argumentsFirst =
  /^[ \t]*(?:```\w*[ \t]*\n\s*)?\{\s*["'](?:arguments|parameters|input|args|params)["']\s*:\s*(?=\{)/gm;
const nameBehind = /^\s*,\s*["'](?:name|tool|function)["']\s*:/;
/** A call is among the first objects of a text, and its arguments are not longer than this. */
const mostObjects = 50;
const longestArguments = 2000;
/** A longer text is read only at both of its ends. */
const mostCharacters = 262_144;

/** An object that is followed by this number of letters of prose is an example within the text, not its end. */
const proseLetters = 60;

/**
 * Returns whether a text that should be prose makes a tool call, in any wording, complete or cut off. An object with
 * prose before and after it is an example, not a call.
 */
export function hasToolCall(text: string): boolean {
  const half = mostCharacters / 2;
  return text.length > mostCharacters ? isCall(text.slice(0, half)) || isCall(text.slice(-half)) : isCall(text);
}

function isCall(text: string): boolean {
  const spoken = text.replaceAll(/`[^`\n]+`/g, "");
  if (marks.some((mark) => mark.test(spoken)) || hasNestedTags(spoken)) return true;
  const named = namedFirst.search(text);
  const found = named === -1 ? argumentsThenName(text) : named;
  if (found === -1) return false;
  const before = letters(text.slice(0, found));
  const end = endOfValue(text, found + text.slice(found).search(/[[{]/));
  return before < proseLetters || end === null || letters(text.slice(end)) < proseLetters;
}

/**
 * Finds `<use_tool> <path>…</path> </use_tool>`: a tag of several words at the start of a line, with another tag
 * directly inside.
 */
function hasNestedTags(text: string): boolean {
  const closings = new Map<string, number>();
  for (const { 1: inner = "", 2: outer = "", index } of text.matchAll(/<\/([a-z_]+)>(?=\s*<\/([a-z_]+)>)/g))
    closings.set(`${outer} ${inner}`, index);
  if (closings.size === 0) return false;
  for (const { 0: opening, 1: outer = "", 2: inner = "", index } of text.matchAll(/^<([a-z_]+)>\s*<([a-z_]+)>/gm)) {
    const isSeveralWords = /^[a-z]+(?:_[a-z]+)+$/.test(outer);
    if (isSeveralWords && (closings.get(`${outer} ${inner}`) ?? -1) >= index + opening.length) return true;
  }
  return false;
}

function argumentsThenName(text: string): number {
  let objects = 0;
  for (const { 0: opening, index } of text.matchAll(argumentsFirst)) {
    if (++objects > mostObjects) break;
    const start = index + opening.length;
    const end = endOfValue(text.slice(start, start + longestArguments), 0);
    if (end !== null && nameBehind.test(text.slice(start + end, start + end + 200))) return index;
  }
  return -1;
}

function letters(text: string): number {
  return text.match(/\p{L}/gu)?.length ?? 0;
}
