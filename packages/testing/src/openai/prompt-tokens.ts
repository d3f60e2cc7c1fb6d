import { tokensOfJson, tokensOfText, tokensPerMessage } from "../count-tokens.ts";
import { isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";

/** The simulator counts every image the same, because it does not decode pixels. The service counts tiles. */
const tokensPerImage = 765;

function contentTokens(content: unknown): number {
  if (typeof content === "string") return tokensOfText(content);
  return listOf(content).reduce<number>((sum, part) => {
    if (!isObject(part)) return sum;
    if (["image_url", "input_image"].includes(textOf(part["type"]))) return sum + tokensPerImage;
    return sum + (typeof part["text"] === "string" ? tokensOfText(part["text"]) : tokensOfJson(part));
  }, 0);
}

function callTokens(call: JsonObject): number {
  const described = isObject(call["function"]) ? call["function"] : call;
  return tokensOfText(textOf(described["name"])) + tokensOfText(textOf(described["arguments"]));
}

export function toolTokens(body: JsonObject): number {
  return listOf(body["tools"]).reduce<number>((sum, tool) => sum + tokensOfJson(tool), 0);
}

export function messageTokens(message: JsonObject): number {
  const calls = objectsOf(message["tool_calls"]).reduce((sum, call) => sum + callTokens(call), 0);
  const reasoning = tokensOfText(textOf(message["reasoning_content"]));
  return contentTokens(message["content"]) + calls + reasoning + tokensPerMessage;
}

/**
 * Counts one item of a Responses request. Reasoning counts only its summary, because the request does not contain the
 * rest.
 */
export function itemTokens(item: JsonObject): number {
  switch (item["type"]) {
    case "function_call":
      return callTokens(item) + tokensPerMessage;
    case "custom_tool_call":
      return tokensOfText(textOf(item["name"])) + tokensOfText(textOf(item["input"])) + tokensPerMessage;
    case "additional_tools":
      return toolTokens(item);
    case "function_call_output":
    case "custom_tool_call_output":
      return contentTokens(item["output"]) + tokensPerMessage;
    case "reasoning":
      return contentTokens(item["summary"]);
    default:
      return contentTokens(item["content"]) + tokensPerMessage;
  }
}
