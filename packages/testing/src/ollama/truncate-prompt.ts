import { tokensOfJson, tokensOfText, tokensPerMessage } from "../count-tokens.ts";
import { isInteger, isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";

/** What Ollama itself counts for an image. */
const tokensPerImage = 768;

/** A prompt after the server's own truncation. */
export interface TruncatedPrompt {
  /** Tokens of the messages that were kept, and after context shift. */
  readonly keptTokens: number;
  /** Tokens of everything that was sent. */
  readonly sentTokens: number;
  /** False when nothing more may be dropped and it still does not fit. */
  readonly fits: boolean;
}

function messageTokens(message: JsonObject): number {
  const calls = objectsOf(message["tool_calls"]).reduce((sum, call) => sum + tokensOfJson(call["function"]), 0);
  const text = tokensOfText(textOf(message["content"])) + tokensOfText(textOf(message["thinking"]));
  return text + calls + listOf(message["images"]).length * tokensPerImage + tokensPerMessage;
}

/** `num_ctx` as asked, at most what the model has. */
export function windowOf(body: JsonObject, modelWindow: number, defaultWindow: number): number {
  const options = isObject(body["options"]) ? body["options"] : {};
  return Math.min(modelWindow, isInteger(options["num_ctx"]) ? options["num_ctx"] : defaultWindow);
}

/**
 * Drops the oldest messages that are neither system messages nor the last one until the rest fits the window; without
 * a word to the caller. When the rest still does not fit, context shift keeps about half of it.
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
