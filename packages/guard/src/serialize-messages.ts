import { isFields } from "@throughline/core/internal";

type Fields = Readonly<Record<string, unknown>>;

/** Limits the part of each tool result that reaches the summarizer. */
const previewCharacters = 500;

/**
 * Converts the messages of any provider to plain text. A summarizer would continue messages, but it has to read them.
 */
export function serializeMessages(messages: readonly unknown[]): string {
  return messages
    .filter(isFields)
    .flatMap((message) => linesOf(message))
    .join("\n\n");
}

function linesOf(message: Fields): string[] {
  const role = String(message["role"] ?? "assistant");
  if (message["type"] === "function_call") return [callLine(message["name"], message["arguments"])];
  if (message["type"] === "function_call_output") return [resultLine(message["output"])];
  if (role === "tool" || role === "toolResult") return [resultLine(message["content"])];
  const content: unknown = message["content"];
  const blocks = Array.isArray(content) ? content.filter(isFields) : [{ type: "text", text: content }];
  const calls = Array.isArray(message["tool_calls"]) ? message["tool_calls"].filter(isFields) : [];
  return [
    ...blocks.flatMap((block) => blockLine(role, block)),
    ...calls.map((call) => {
      const called = isFields(call["function"]) ? call["function"] : {};
      return callLine(called["name"], called["arguments"]);
    }),
  ];
}

function blockLine(role: string, block: Fields): string[] {
  if (block["type"] === "tool_use" || block["type"] === "toolCall")
    return [callLine(block["name"], block["input"] ?? block["arguments"])];
  if (block["type"] === "tool_result") return [resultLine(block["content"])];
  const text = block["text"];
  if (typeof text === "string") return text.trim() === "" ? [] : [`[${role}]: ${text}`];
  return typeof block["type"] === "string" && !block["type"].includes("thinking")
    ? [`[${role}]: (${block["type"]})`]
    : [];
}

function callLine(name: unknown, input: unknown): string {
  return `[assistant called ${String(name)}]: ${typeof input === "string" ? input : (JSON.stringify(input) ?? "{}")}`;
}

function resultLine(content: unknown): string {
  const text = typeof content === "string" ? content : textsOf(content).join("\n");
  return `[tool result]: ${text.slice(0, previewCharacters).toWellFormed()}`;
}

function textsOf(content: unknown): string[] {
  const blocks = Array.isArray(content) ? content.filter(isFields) : [];
  return blocks.map(({ text }) => text).filter((text) => typeof text === "string");
}
