import { tokensOfJson, tokensOfText, tokensPerMessage } from "../count-tokens.ts";
import { isInteger, isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";

/** Ollama counts this number of tokens for every image. */
const tokensPerImage = 768;

export interface TruncatedPrompt {
  /** Counts the messages that the server kept, after a context shift. */
  readonly keptTokens: number;
  /** Counts the whole prompt that the client sent. */
  readonly sentTokens: number;
  /** Is false when the prompt does not fit although the server dropped all messages that it may drop. */
  readonly fits: boolean;
}

function messageTokens(message: JsonObject): number {
  const calls = objectsOf(message["tool_calls"]).reduce((sum, call) => sum + tokensOfJson(call["function"]), 0);
  const text = tokensOfText(textOf(message["content"])) + tokensOfText(textOf(message["thinking"]));
  return text + calls + listOf(message["images"]).length * tokensPerImage + tokensPerMessage;
}

/** Returns the requested `num_ctx`, at most the model's window. */
export function windowOf(body: JsonObject, modelWindow: number, defaultWindow: number): number {
  const options = isObject(body["options"]) ? body["options"] : {};
  return Math.min(modelWindow, isInteger(options["num_ctx"]) ? options["num_ctx"] : defaultWindow);
}

/**
 * Drops the oldest messages until the rest fits the window, without informing the caller. It never drops system
 * messages or the last message. If the rest still does not fit, a context shift keeps about half of the window.
 */
export function truncatePrompt(body: JsonObject, windowTokens: number): TruncatedPrompt {
  const messages = objectsOf(body["messages"]);
  const tools = listOf(body["tools"]).reduce<number>((sum, tool) => sum + tokensOfJson(tool), 0);
  const costs = messages.map(messageTokens);
  const sentTokens = tools + costs.reduce((sum, cost) => sum + cost, 0);
  let keptTokens = sentTokens;
  if (body["truncate"] !== false)
    for (const [index, message] of messages.slice(0, -1).entries())
      if (keptTokens > windowTokens && message["role"] !== "system") keptTokens -= costs[index] ?? 0;
  if (keptTokens <= windowTokens) return { keptTokens, sentTokens, fits: true };
  if (body["truncate"] === false || body["shift"] === false) return { keptTokens, sentTokens, fits: false };
  const options = isObject(body["options"]) ? body["options"] : {};
  const keep = isInteger(options["num_keep"]) ? options["num_keep"] : 0;
  const shifted = windowTokens - Math.max(Math.floor((windowTokens - keep) / 2), 1);
  return { keptTokens: shifted, sentTokens, fits: true };
}
