import { type Fields, isFields, parsedFields } from "@throughline/core/internal";
import type { CollectedReply } from "./collected-reply.ts";
import { listOf, textOr } from "./json-fields.ts";

export function collectOllama(lines: readonly string[]): CollectedReply {
  const calls: unknown[] = [];
  const unknown: string[] = [];
  let [content, thinking] = ["", ""];
  let last: Fields | null = null;
  let error: string | null = null;
  let isEnded = false;
  for (const line of lines) {
    if (line.trim() === "") continue;
    const part = parsedFields(line);
    if (part === null) unknown.push(line);
    else if (typeof part["error"] === "string") error = line;
    else {
      const message = isFields(part["message"]) ? part["message"] : {};
      content += textOr(message["content"], "") + textOr(part["response"], "");
      thinking += textOr(message["thinking"], "") + textOr(part["thinking"], "");
      calls.push(...listOf(message["tool_calls"]));
      last = part;
      isEnded ||= part["done"] === true;
    }
  }
  if (last === null) return { reply: null, isEnded, error, unknown };
  const message = {
    role: "assistant",
    content,
    ...(thinking === "" ? {} : { thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return { reply: { ...last, message, done: true }, isEnded, error, unknown };
}
