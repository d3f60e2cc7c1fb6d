import type { AssistantMessage, RecordDraft, ToolResultMessage } from "@throughline/core";
import { isNestedDeeper, maxArgumentsNesting, readUsage } from "@throughline/core/internal";

type Fields = Readonly<Record<string, unknown>>;

export interface SdkMessageFacts {
  /** Holds the id of the SDK's session; null when the message states none. */
  readonly sdkSessionId: string | null;
  readonly drafts: readonly RecordDraft[];
  /** Holds the result from the message that ends a run; null for every other message. */
  readonly result: { readonly subtype: string; readonly isError: boolean; readonly text: string } | null;
}

/** Reads the messages of one run in order. Unknown messages are skipped; the SDK's own transcript keeps them. */
export class SdkMessageReader {
  readonly #toolNames = new Map<string, string>();
  #lastReplyId: string | null = null;

  read(value: unknown): SdkMessageFacts {
    const message = fieldsOf(value);
    const sdkSessionId = textOf(message["session_id"]);
    // A sub-agent has its own conversation. Only its result, a tool result, belongs to this one.
    if (typeof message["parent_tool_use_id"] === "string") return { sdkSessionId: null, drafts: [], result: null };
    if (message["isReplay"] === true) return { sdkSessionId, drafts: [], result: null };
    switch (message["type"]) {
      case "assistant":
        return { sdkSessionId, drafts: this.#reply(fieldsOf(message["message"])), result: null };
      case "user":
        return { sdkSessionId, drafts: this.#results(fieldsOf(message["message"])["content"]), result: null };
      case "result":
        return { sdkSessionId, drafts: [], result: endOfRun(message) };
      default:
        return { sdkSessionId, drafts: [], result: null };
    }
  }

  #reply(reply: Fields): readonly RecordDraft[] {
    const id = textOf(reply["id"]);
    // The SDK sends a reply block by block. Each message has the same id and the same usage, so usage counts once.
    const isFragment = id !== null && id === this.#lastReplyId;
    this.#lastReplyId = id;
    const content = listOf(reply["content"]).map((block) => replyBlock(block, this.#toolNames));
    if (content.length === 0) return [];
    const usage = isFragment ? null : readUsage(reply["usage"]);
    const model = textOf(reply["model"]);
    const message: AssistantMessage = {
      role: "assistant",
      content,
      api: "anthropic",
      provider: "anthropic",
      ...(model === null ? {} : { model }),
      stopReason: content.some(({ type }) => type === "toolCall") ? "toolUse" : "stop",
      ...(usage === null ? {} : { usage }),
      ...(isFragment ? { fragment: true } : {}),
    };
    return [{ type: "message", message }];
  }

  #results(content: unknown): readonly RecordDraft[] {
    this.#lastReplyId = null;
    return listOf(content).flatMap((block) => {
      if (block["type"] !== "tool_result") return [];
      const toolCallId = textOf(block["tool_use_id"]) ?? "";
      const message: ToolResultMessage = {
        role: "toolResult",
        toolCallId,
        toolName: this.#toolNames.get(toolCallId) ?? "",
        content: resultContent(block["content"]),
        isError: block["is_error"] === true,
      };
      return [{ type: "message", message }];
    });
  }
}

function endOfRun(message: Fields): SdkMessageFacts["result"] {
  const said = [message["result"], ...listOfTexts(message["errors"])].filter((text) => typeof text === "string");
  const subtype = textOf(message["subtype"]) ?? "unknown";
  return { subtype, isError: message["is_error"] === true, text: said.join("\n") };
}

function replyBlock(
  block: Fields,
  names: Map<string, string>,
): { readonly type: string; readonly [field: string]: unknown } {
  switch (block["type"]) {
    case "text":
      return { type: "text", text: textOf(block["text"]) ?? "" };
    case "thinking":
      return {
        type: "thinking",
        thinking: textOf(block["thinking"]) ?? "",
        ...(textOf(block["signature"]) === null ? {} : { thinkingSignature: block["signature"] }),
      };
    case "tool_use": {
      const id = textOf(block["id"]) ?? "";
      const name = textOf(block["name"]) ?? "";
      names.set(id, name);
      return { type: "toolCall", id, name, ...argumentsOf(fieldsOf(block["input"])) };
    }
    default:
      return { ...block, type: textOf(block["type"]) ?? "unknown" };
  }
}

/**
 * Stores arguments as text when they are nested deeper than a store accepts. The run already has them and continues.
 */
function argumentsOf(input: Fields): { readonly arguments: Fields; readonly partialJson?: string } {
  if (!isNestedDeeper(input, maxArgumentsNesting)) return { arguments: input };
  return { arguments: {}, partialJson: JSON.stringify(input) };
}

function resultContent(content: unknown): ToolResultMessage["content"] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).map((block) => ({ ...block, type: textOf(block["type"]) ?? "unknown" }));
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

function listOfTexts(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
