import { asText } from "./as-text.ts";
import type { AssistantMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock } from "@throughline/core";
import type { UnknownBlock } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";

export type UserBlock = TextBlock | ImageBlock | UnknownBlock;

export type ReplyBlock = Exclude<AssistantMessage["content"], string>[number];

/** Returns no block for an empty text, because such a block says nothing. */
export function textBlocks(text: string): readonly TextBlock[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** Returns no block for thinking without text and signature, because such a block says nothing. */
export function thinkingBlocks(thinking: string, signature: string | null): readonly ThinkingBlock[] {
  if (thinking === "" && (signature === null || signature === "")) return [];
  return [
    { type: "thinking", thinking, ...(signature === null || signature === "" ? {} : { thinkingSignature: signature }) },
  ];
}

/**
 * Builds a call from an object or from its JSON text. Any other arguments are kept as `partialJson`, because records
 * require an object.
 */
export function callBlock(id: string, name: string, given: unknown): ToolCallBlock {
  const call = { type: "toolCall", id, name } as const;
  if (isWireFields(given)) return { ...call, arguments: given };
  if (given === undefined || given === null || given === "") return { ...call, arguments: {} };
  const json = typeof given === "string" ? given : JSON.stringify(given);
  const parsed = parsedObject(json);
  return parsed === null ? { ...call, arguments: {}, partialJson: json } : { ...call, arguments: parsed };
}

export function mediaBlock(kind: "image" | "document", url: string, name: string | null = null): UserBlock {
  const inside = /^data:([^,;]{1,200});base64,/.exec(url.slice(0, 250));
  if (kind === "image") {
    if (inside === null) return { type: "image", source: { type: "url", url } };
    return { type: "image", data: url.slice(inside[0].length), mimeType: inside[1] ?? "" };
  }
  const source =
    inside === null
      ? { type: "url", url }
      : { type: "base64", media_type: inside[1], data: url.slice(inside[0].length) };
  return { type: "document", source, ...(name === null ? {} : { title: name }) };
}

export function unknownBlock(fields: WireFields): UnknownBlock {
  const { type } = fields;
  if (typeof type === "string" && type !== "") return { ...fields, type };
  // Gemini and Bedrock identify a part by its only field.
  return { ...fields, type: Object.keys(fields)[0] ?? "unknown" };
}

/** Returns the text instead of a list if the content is a single text. This is the common form in records. */
export function plainContent<Block extends UserBlock | ReplyBlock>(
  blocks: readonly Block[],
): string | readonly Block[] {
  const [only] = blocks;
  const isPlain = blocks.length === 1 && only?.type === "text" && Object.keys(only).length === 2;
  return isPlain ? asText((only as TextBlock).text) : blocks;
}

function parsedObject(json: string): WireFields | null {
  try {
    const value: unknown = JSON.parse(json);
    return isWireFields(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
