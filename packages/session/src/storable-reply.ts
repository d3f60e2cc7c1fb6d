import type { AssistantMessage, ToolCallBlock } from "@throughline/core";
import { fitReply } from "./fit-record.ts";
import { isNestedDeeper, maxArgumentsNesting } from "@throughline/core/internal";

/**
 * Converts a reply so that every store accepts it and every reader shows it. Arguments of a call that are not an
 * object, or are nested too deeply, stay as text. Content that is too large for a record is cut. The call fails then,
 * but not the turn.
 */
export function storableReply(message: AssistantMessage, recordBytes: number): AssistantMessage {
  const { content } = message;
  if (!Array.isArray(content) || !content.some(hasOddArguments)) return fitReply(message, recordBytes);
  const blocks = content.map((block) => (hasOddArguments(block) ? withTextOnly(block) : block));
  return fitReply({ ...message, content: blocks }, recordBytes);
}

function hasOddArguments(block: unknown): block is ToolCallBlock {
  const { type, arguments: args } = (block ?? {}) as { readonly type?: unknown; readonly arguments?: unknown };
  if (type !== "toolCall") return false;
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
  return !isObject || isNestedDeeper(args, maxArgumentsNesting);
}

function withTextOnly(call: ToolCallBlock): ToolCallBlock {
  return { ...call, arguments: {}, partialJson: call.partialJson ?? textOf(call.arguments) };
}

function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (error) {
    // JSON.stringify exceeds the stack at some thousand levels of nesting.
    if (error instanceof RangeError) return "";
    throw error;
  }
}
