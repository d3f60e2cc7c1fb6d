import { isFields } from "@throughline/core/internal";
import type { ChatResponse } from "ollama";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, textOr } from "./wire-fields.ts";

/**
 * Adds a line of a stream, or the whole answer, to the draft. A stream sends thinking, text and calls in this order, so
 * one block of each is enough. Each call arrives whole.
 */
export function takeOllamaResponse(response: ChatResponse, draft: ReplyDraft): void {
  assertAnswer(response);
  if (textOr(response.model, "") !== "") draft.responseModel = response.model;
  const message: unknown = response.message;
  if (isFields(message)) {
    const thinking = textOr(message["thinking"], "");
    if (thinking !== "") draft.thinking("thinking", thinking);
    const text = textOr(message["content"], "");
    if (text !== "") draft.text("text", text);
    for (const call of fieldsOf(message["tool_calls"])) takeCall(call, draft);
  }
  if (!response.done) return;
  const { prompt_eval_count: prompt, eval_count: output } = response;
  const isCounted = typeof prompt === "number" || typeof output === "number";
  draft.usage = isCounted ? { prompt_eval_count: prompt, eval_count: output } : null;
  draft.stopReason = textOr(response.done_reason, "") || "stop";
}

export function ollamaEnd(doneReason: string): ReplyEnd {
  return { stopReason: doneReason === "length" ? "length" : "stop" };
}

/** The SDK reports an error inside a stream, but not inside a whole answer. */
function assertAnswer(response: unknown): void {
  if (!isFields(response)) throw new SyntaxError(`The server gave no answer but this: ${JSON.stringify(response)}`);
  if (typeof response["error"] === "string") throw new Error(response["error"]);
}

/** Older servers send calls without an id, so the key does not depend on the id. */
function takeCall(call: Readonly<Record<string, unknown>>, draft: ReplyDraft): void {
  const key = draft.nextKey;
  const described = isFields(call["function"]) ? call["function"] : {};
  draft.call(key, textOr(call["id"], ""), textOr(described["name"], ""));
  draft.input(key, described["arguments"]);
  draft.endCall(key);
}
