import { isObject, objectsOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import type { AnswerReply, ReplyPart, ScriptedAnswer } from "./simulated-reply.ts";

/** Returns true when the request asks for JSON in the provider's own mode. */
function asksForJson({ output_config, response_format, text, format }: JsonObject): boolean {
  const asked = [
    isObject(output_config) ? output_config["format"] : undefined,
    response_format,
    isObject(text) ? text["format"] : undefined,
    format,
  ].find((one) => one !== undefined && one !== null && one !== "");
  return asked === "json" || (isObject(asked) && asked["type"] !== "text");
}

/** Returns the tool that must take the answer: the forced one, else the last one. */
function answeringTool(body: JsonObject): string | null {
  const choice = body["tool_choice"];
  const forced = isObject(choice) ? nameOf(choice) : "";
  const last = objectsOf(body["tools"]).at(-1);
  return forced || (last === undefined ? "" : nameOf(last)) || null;
}

function nameOf(described: JsonObject): string {
  return textOf(described["name"]) || (isObject(described["function"]) ? textOf(described["function"]["name"]) : "");
}

/** Replaces the JSON parts of an answer by text or by a tool call, as the request asks for it. */
export function withJsonParts(reply: ScriptedAnswer, body: JsonObject): AnswerReply {
  const { content, ...rest } = reply;
  if (typeof content === "string") return { ...rest, content };
  const name = asksForJson(body) ? null : answeringTool(body);
  const parts = content.map((part): ReplyPart => {
    if (part.type !== "json") return part;
    if (name === null) return { type: "text", text: JSON.stringify(part.value) };
    return { type: "tool-call", name, input: part.value };
  });
  return { ...rest, content: parts };
}
