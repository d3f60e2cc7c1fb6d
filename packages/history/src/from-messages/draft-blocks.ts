import { asText } from "./as-text.ts";
import type { AssistantMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock } from "@throughline/core";
import type { UnknownBlock } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";

/** A block of a user message or a tool result. */
export type UserBlock = TextBlock | ImageBlock | UnknownBlock;

/** A block of a reply. */
export type ReplyBlock = Exclude<AssistantMessage["content"], string>[number];

/** A text that says something; none for an empty one. */
export function textBlocks(text: string): readonly TextBlock[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** A block of thinking; none for one without words and signature. */
export function thinkingBlocks(thinking: string, signature: string | null): readonly ThinkingBlock[] {
  if (thinking === "" && (signature === null || signature === "")) return [];
  return [
    { type: "thinking", thinking, ...(signature === null || signature === "" ? {} : { thinkingSignature: signature }) },
  ];
}

/**
 * A call with its arguments: an object, or the JSON of one. Whatever else a model wrote is kept beside empty arguments.
 */
export function callBlock(id: string, name: string, given: unknown): ToolCallBlock {
  const call = { type: "toolCall", id, name } as const;
  if (isWireFields(given)) return { ...call, arguments: given };
  if (given === undefined || given === null || given === "") return { ...call, arguments: {} };
  const json = typeof given === "string" ? given : JSON.stringify(given);
  const parsed = parsedObject(json);
  return parsed === null ? { ...call, arguments: {}, partialJson: json } : { ...call, arguments: parsed };
}

/** An image or a file behind an address, or inside of one. */
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

/** A block of a type that is none of ours, under the name it has. */
export function unknownBlock(fields: WireFields): UnknownBlock {
  const { type } = fields;
  if (typeof type === "string" && type !== "") return { ...fields, type };
  // Gemini and Bedrock name a part by the one field it has.
  return { ...fields, type: Object.keys(fields)[0] ?? "unknown" };
}

/** One text alone goes as text, as people write it. */
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
