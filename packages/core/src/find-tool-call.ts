import { endOfValue } from "./end-of-value.ts";

/** Marks that models and the servers before them put around a call. No prose has them but what speaks of them. */
const marks: readonly RegExp[] = [
  /<\/?(?:[\w-]+:)?(?:tool_calls?|tool_use|function_calls?|invoke|tool_code)\b/,
  /<function=[\w.-]+>/,
  /<[|｜](?:tool|python_tag|function|plugin|action)/,
  /\[TOOL_CALLS?\]|✿FUNCTION✿/,
  /^```tool_(?:code|call)\b/m,
  /\bto=functions\.\w/,
  /^[ \t]*(?:functions|default_api)\.\w+\s*\(/m,
  /\bprint\(default_api\.\w+\(/,
  /^Action:[^\n]+\n+Action Input:/m,
  /^<([a-z]+(?:_[a-z]+)+)>\s*<([a-z_]+)>[^]*?<\/\2>\s*<\/\1>/m,
];

/** An object, at the beginning of a line or of a fence, that names something and gives it arguments. Quotes may be any or none. */
const namedFirst =
  /^[ \t]*(?:```\w*[ \t]*\n\s*)?[[{][\s[{]*(?:["'](?:type|id)["']\s*:\s*["'][^"'\n]*["']\s*,\s*|["']?(?:tool_calls?|function(?:_call)?|action)["']?\s*:\s*[[{\s]+)*["']?(?:name|tool|tool_name|function|action|recipient_name)["']?\s*:\s*["']?[\w./-]+["']?\s*,\s*(?:["']\w+["']\s*:\s*["'][^"'\n]*["']\s*,\s*)*["']?(?:arguments|parameters|input|args|params|tool_input|action_input)["']?\s*:/m;
const argumentsFirst =
  /^[ \t]*(?:```\w*[ \t]*\n\s*)?\{\s*["'](?:arguments|parameters|input|args|params)["']\s*:\s*\{[^]{0,2000}?\}\s*,\s*["'](?:name|tool|function)["']\s*:/m;

/** So many letters of prose behind an object say that it was an example of the text and not its end. */
const proseLetters = 60;

/**
 * Whether a text that should be prose makes a call of a tool, in whatever wording, whole or broken off. An object that
 * prose stands before and behind is an example, not a call.
 */
export function hasToolCall(text: string): boolean {
  const spoken = text.replaceAll(/`[^`\n]+`/g, "");
  if (marks.some((mark) => mark.test(spoken))) return true;
  const found = namedFirst.exec(text) ?? argumentsFirst.exec(text);
  if (found === null) return false;
  const before = letters(text.slice(0, found.index));
  const end = endOfValue(text, found.index + found[0].search(/[[{]/));
  return before < proseLetters || end === null || letters(text.slice(end)) < proseLetters;
}

function letters(text: string): number {
  return text.match(/\p{L}/gu)?.length ?? 0;
}
