import { tokensOfJson, tokensOfText, tokensPerMessage } from "../count-tokens.ts";
import type { PromptPiece } from "../count-tokens.ts";
import { isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";

/** Every image counts the same here; the service counts by its pixels. */
const tokensPerImage = 1_600;

function blockTokens(block: unknown): number {
  if (!isObject(block)) return tokensOfJson(block);
  switch (block["type"]) {
    case "text":
      return tokensOfText(textOf(block["text"]));
    case "image":
      return tokensPerImage;
    case "tool_use":
      return tokensOfText(textOf(block["name"])) + tokensOfJson(block["input"]);
    case "tool_result":
      return typeof block["content"] === "string"
        ? tokensOfText(block["content"])
        : listOf(block["content"]).reduce<number>((sum, part) => sum + blockTokens(part), 0);
    case "thinking":
      return tokensOfText(textOf(block["thinking"]));
    case "redacted_thinking":
      return tokensOfText(textOf(block["data"]));
    default:
      return tokensOfJson(block);
  }
}

function withoutMarker(part: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(part).filter(([key]) => key !== "cache_control"));
}

function piece(part: JsonObject, scope: string, tokens: number): PromptPiece {
  return { key: `${scope}${JSON.stringify(withoutMarker(part))}`, tokens, marked: isObject(part["cache_control"]) };
}

/** A string stands for one text block. */
function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : objectsOf(content);
}

/** The pieces of the message list: one a block, the first of each message saying whose message begins. */
export function conversationPieces(messages: readonly JsonObject[]): readonly PromptPiece[] {
  return messages.flatMap((message) =>
    blocksOf(message["content"]).map((block, index) => {
      const scope = index === 0 ? `${textOf(message["role"])}:` : "";
      return piece(block, scope, blockTokens(block) + (index === 0 ? tokensPerMessage : 0));
    }),
  );
}

/** The whole prompt in the order the service caches it: tools, system, messages. */
export function promptPieces(body: JsonObject): readonly PromptPiece[] {
  const all = [
    ...objectsOf(body["tools"]).map((tool) => piece(tool, "tool:", tokensOfJson(withoutMarker(tool)))),
    ...blocksOf(body["system"]).map((block) => piece(block, "system:", blockTokens(block))),
    ...conversationPieces(objectsOf(body["messages"])),
  ];
  // A marker on the request itself stands for one on its last block.
  return isObject(body["cache_control"]) && all.length > 0
    ? [...all.slice(0, -1), { ...all[all.length - 1]!, marked: true }]
    : all;
}
