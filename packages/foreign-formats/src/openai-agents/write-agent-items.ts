import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { providerMappings, type ProviderMapping, type ProviderRules } from "@throughline/history/internal";
import type { TurnWriter } from "../live/live-format.ts";
import { documentWriter } from "../document-writer.ts";
import type { FormatWriter, WriteOptions, WrittenSession } from "../format-writer.ts";
import { sentMessages } from "../message-texts.ts";

// The messages are plain JSON, but their interfaces have no index signature.
const responses = providerMappings["openai-responses"]({}) as unknown as ProviderMapping<Fields>;

/** The writer renders the messages that a model would get now, as items of a session of the JavaScript SDK. */
export const agentItemWriter: FormatWriter = documentWriter({ head: "[", tail: "\n]\n" }, agentItems);

export const agentItemRules: ProviderRules = responses.rules;

/** Each turn gives complete items, so `close` adds none. */
export function createAgentItemTurns(): TurnWriter {
  const names = new Map<unknown, unknown>();
  return {
    turn: (turn) =>
      responses.turn(turn).map((item) => {
        if (item["type"] === "function_call") names.set(item["call_id"], item["name"]);
        return agentItem(item, names);
      }),
    close: () => [],
  };
}

function* agentItems(session: WrittenSession, options: WriteOptions): Generator<Fields | undefined> {
  const names = new Map<unknown, unknown>();
  for (const item of sentMessages(session, responses, options)) {
    if (item?.["type"] === "function_call") names.set(item["call_id"], item["name"]);
    yield item === undefined ? undefined : agentItem(item, names);
  }
}

/** The SDK stores an item of the Responses API with other names and a status. */
function agentItem(item: Fields, names: ReadonlyMap<unknown, unknown>): Fields {
  const { type, role, content, call_id: callId, output, summary, encrypted_content: encrypted, id, ...rest } = item;
  const stated = id === undefined ? {} : { id };
  switch (type) {
    case "function_call":
      return { type, ...stated, callId, status: "completed", ...rest };
    case "function_call_output": {
      const name = names.get(callId) ?? "unknown";
      return { type: "function_call_result", name, callId, status: "completed", output: resultOf(output) };
    }
    case "reasoning": {
      const providerData = encrypted === undefined ? {} : { providerData: { encrypted_content: encrypted } };
      const texts = Array.isArray(summary) ? (summary as readonly unknown[]).filter(isFields) : [];
      return { type, ...stated, content: texts.map(({ text }) => ({ type: "input_text", text })), ...providerData };
    }
    default:
      return messageOf({ ...stated, role, content });
  }
}

function messageOf({ id, role, content }: Fields): Fields {
  const kind = role === "assistant" ? "output_text" : "input_text";
  const parts = typeof content === "string" ? [{ type: kind, text: content }] : content;
  const stated = id === undefined ? {} : { id };
  if (role === "assistant") return { type: "message", ...stated, role, status: "completed", content: parts };
  if (role === "system" || role === "developer") return { type: "message", role: "system", content: textOf(parts) };
  return { type: "message", role, content: (parts as readonly Fields[]).map(inputPart) };
}

function inputPart(part: Fields): Fields {
  const { type, image_url: url, file_data: data, filename } = part;
  if (type === "input_image") return { type, image: url };
  if (type === "input_file") return { type, file: data, ...(filename === undefined ? {} : { filename }) };
  return part;
}

function textOf(parts: unknown): string {
  if (!Array.isArray(parts)) return asText(parts);
  return (parts as readonly Fields[]).map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}

function resultOf(output: unknown): unknown {
  return Array.isArray(output) ? (output as readonly Fields[]).map(outputPart) : { type: "text", text: asText(output) };
}

function outputPart(part: Fields): Fields {
  const { type, text, image_url: url } = part;
  if (type === "input_text") return { type: "input_text", text };
  return type === "input_image" ? { type, image: url } : part;
}
