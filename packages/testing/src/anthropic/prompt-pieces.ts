import { tokensOfJson, tokensOfText, tokensPerMessage } from "../count-tokens.ts";
import type { PromptPiece } from "../count-tokens.ts";
import { isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";

/** The simulator counts every image the same, because it does not decode pixels. The service counts by pixels. */
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

/** The API accepts a string in place of a single text block. */
function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : objectsOf(content);
}

/**
 * Returns one piece per block. The first piece of each message includes the role, so that a different role changes the
 * key.
 */
export function conversationPieces(messages: readonly JsonObject[]): readonly PromptPiece[] {
  return messages.flatMap((message) =>
    blocksOf(message["content"]).map((block, index) => {
      const scope = index === 0 ? `${textOf(message["role"])}:` : "";
      return piece(block, scope, blockTokens(block) + (index === 0 ? tokensPerMessage : 0));
    }),
  );
}

/** Returns the whole prompt in the order in which the service caches it: tools, system, messages. */
export function promptPieces(body: JsonObject): readonly PromptPiece[] {
  const all = [
    ...objectsOf(body["tools"]).map((tool) => piece(tool, "tool:", tokensOfJson(withoutMarker(tool)))),
    ...blocksOf(body["system"]).map((block) => piece(block, "system:", blockTokens(block))),
    ...conversationPieces(objectsOf(body["messages"])),
  ];
  // A marker on the request itself is equivalent to a marker on its last block.
  return isObject(body["cache_control"]) && all.length > 0
    ? [...all.slice(0, -1), { ...all[all.length - 1]!, marked: true }]
    : all;
}
