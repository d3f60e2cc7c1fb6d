import { createHash } from "node:crypto";
import { isFields, type Fields } from "@throughline/core/internal";
import { providerMappings, type ProviderMapping, type ProviderRules } from "@throughline/history/internal";
import { asText } from "../as-text.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import type { TurnWriter } from "../live/live-format.ts";
import { readMessage } from "./langgraph-messages.ts";

// The messages are plain JSON, but their interfaces have no index signature.
const chat = providerMappings.openai({}) as unknown as ProviderMapping<Fields>;

export const langchainRules: ProviderRules = chat.rules;

/** Reads messages in the form of LangChain's serializer. */
export class LangchainMessages implements MessageList {
  readonly name = "langgraph";
  readonly sessionId = null;
  readonly entry = {};

  frame(): ReadFrame {
    return { bodies: [] };
  }

  element(value: Fields): ReadElement {
    const id = isFields(value["kwargs"]) ? value["kwargs"]["id"] : undefined;
    return { bodies: readMessage(value), isUnreadable: false, id };
  }
}

/**
 * Each turn gives complete messages, so `close` adds none. A message has the id of its record. A created message gets
 * an id from its content: a graph would assign another id and then treat it as a new message.
 */
export function createLangchainTurns(): TurnWriter {
  const used = new Map<string, number>();
  const unique = (id: string): string => {
    const count = used.get(id) ?? 0;
    used.set(id, count + 1);
    return count === 0 ? id : `${id}-${count}`;
  };
  return {
    turn: (turn) => {
      const resultId = turn.role === "user" ? (turn.results[0]?.recordId ?? null) : null;
      return chat.turn(turn).map((message) => {
        const recordId = message["role"] === "tool" ? resultId : turn.recordId;
        return langchainMessage(message, unique(recordId ?? madeUpId(message)));
      });
    },
    close: () => [],
  };
}

function madeUpId(message: Fields): string {
  return `made-up-${createHash("sha256").update(JSON.stringify(message)).digest("hex").slice(0, 32)}`;
}

const classes: ReadonlyMap<unknown, string> = new Map([
  ["user", "HumanMessage"],
  ["assistant", "AIMessage"],
  ["tool", "ToolMessage"],
]);

function langchainMessage(message: Fields, messageId: string): Fields {
  const { role, content, tool_calls: calls, tool_call_id: callId } = message;
  const id = ["langchain_core", "messages", classes.get(role) ?? "SystemMessage"];
  const kwargs = {
    content: content ?? "",
    id: messageId,
    ...(Array.isArray(calls) ? { tool_calls: (calls as readonly Fields[]).map(toolCall) } : {}),
    ...(role === "tool" ? { tool_call_id: callId } : {}),
  };
  return { lc: 1, type: "constructor", id, kwargs };
}

function toolCall({ id, function: called }: Fields): Fields {
  const { name, arguments: text } = isFields(called) ? called : {};
  return { id, name, args: JSON.parse(asText(text)) as unknown, type: "tool_call" };
}

/** Returns true for a message in the form of LangChain's serializer. A `RemoveMessage` is not one. */
export function isLangchainMessage(value: unknown): value is Fields {
  if (!isFields(value) || value["lc"] !== 1 || value["type"] !== "constructor") return false;
  const { id, kwargs } = value;
  const name: unknown = Array.isArray(id) ? id.at(-1) : null;
  return isFields(kwargs) && typeof name === "string" && /Message(Chunk)?$/.test(name) && name !== "RemoveMessage";
}
