import { isFields, type Fields } from "@throughline/core/internal";
import { readTimeMs } from "./read-time.ts";

const flatTypes: ReadonlySet<unknown> = new Set(["user", "assistant", "tool_use", "tool_result"]);

/**
 * A flat record is a message without the `message` object around it. Both tutorials write such records, and some
 * writers leave out even the type.
 */
export function isFlatRecord(value: Fields): boolean {
  if (value["message"] !== undefined) return false;
  if (flatTypes.has(value["type"])) return true;
  return value["type"] === undefined && typeof value["role"] === "string" && value["content"] !== undefined;
}

export interface FlatMessage {
  readonly message: Fields;
  /**
   * The text describes two fields of the line that contradict each other, so that a finding can report it; null when
   * none do.
   */
  readonly conflict: string | null;
}

/** Maps call ids to tool names until the result arrives, because a flat result does not state the tool's name. */
export type ToolNames = Map<string, string>;

/** Returns the message of a flat record in version 3's shape. */
export function readFlatMessage(value: Fields, toolNames: ToolNames): FlatMessage {
  const { type, id: _id, parentId: _parentId, timestamp, ts, role, content, ...rest } = value;
  const timeMs = readTimeMs(ts ?? timestamp);
  const time = timeMs === null ? {} : { timestamp: timeMs };
  switch (type ?? role) {
    case "user":
      return plain({ role: "user", content: contentOf(content, "user"), ...rest, ...time });
    case "assistant":
      return plain({ role: "assistant", content: blocksOf(content, toolNames), ...rest, ...time });
    case "tool_use":
      return plain({ ...toolUseMessage(rest, toolNames), ...time });
    case "tool_result":
      return toolResultMessage({ ...rest, content }, time, toolNames);
    default:
      return plain({ role, content, ...rest, ...time });
  }
}

function plain(message: Fields): FlatMessage {
  return { message, conflict: null };
}

function toolUseMessage(fields: Fields, toolNames: ToolNames): Fields {
  const { tool_use_id, name, input, ...rest } = fields;
  return { role: "assistant", content: [toolCall(tool_use_id, name, input, toolNames)], ...rest };
}

function toolResultMessage(fields: Fields, time: Fields, toolNames: ToolNames): FlatMessage {
  const { tool_use_id, content, output, is_error, isError, name, ...rest } = fields;
  const toolCallId = textOf(tool_use_id);
  const body = content ?? output;
  const toolName = typeof name === "string" ? name : toolNames.get(toolCallId);
  toolNames.delete(toolCallId);
  const isConflict =
    content !== undefined &&
    content !== null &&
    output !== undefined &&
    JSON.stringify(content) !== JSON.stringify(output);
  const message = {
    role: "toolResult",
    toolCallId,
    ...(toolName === undefined ? {} : { toolName }),
    content: contentOf(body, "toolResult"),
    // The content that is not read goes into `details`: people and programs find it there, and models do not get it.
    ...(isConflict ? { details: { output } } : {}),
    isError: (is_error ?? isError) === true,
    ...rest,
    ...time,
  };
  return { message, conflict: isConflict ? "content and output of the tool result differ; content is read" : null };
}

function contentOf(content: unknown, role: "user" | "toolResult"): unknown {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((block) => readBlock(block, new Map()));
  if (content === undefined || content === null) return role === "user" ? "" : [];
  return JSON.stringify(content);
}

function blocksOf(content: unknown, toolNames: ToolNames): unknown {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (Array.isArray(content)) return content.map((block) => readBlock(block, toolNames));
  return content === undefined || content === null ? [] : [{ type: "text", text: JSON.stringify(content) }];
}

/**
 * Version 3 has other shapes than Anthropic for calls and thinking, so those blocks are converted. Other blocks stay
 * unchanged.
 */
function readBlock(block: unknown, toolNames: ToolNames): unknown {
  if (typeof block === "string") return { type: "text", text: block };
  if (!isFields(block)) return { type: "unknown", value: block };
  switch (block["type"]) {
    case "tool_use":
      return toolCall(block["id"], block["name"], block["input"], toolNames);
    case "thinking":
      return thinking(block);
    case "redacted_thinking":
      return { type: "thinking", thinking: "", thinkingSignature: textOf(block["data"]), redacted: true };
    default:
      return typeof block["type"] === "string" ? block : { ...block, type: "unknown" };
  }
}

function thinking(block: Fields): Fields {
  const { signature, ...rest } = block;
  return signature === undefined ? rest : { ...rest, thinkingSignature: signature };
}

function toolCall(id: unknown, name: unknown, input: unknown, toolNames: ToolNames): Fields {
  const call = {
    type: "toolCall",
    id: textOf(id),
    name: textOf(name),
    arguments: isFields(input) ? input : input === undefined ? {} : { input },
  };
  if (call.name !== "") toolNames.set(call.id, call.name);
  return call;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : String(value);
}
