import { isFields, type Fields } from "@throughline/core/internal";
import type Anthropic from "@anthropic-ai/sdk";
import { wholeBody, type AnswerErrors } from "./answer-body.ts";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** Adds a whole message to the draft. @throws the error that `errors` creates for any other body */
export function takeAnthropicMessage(answer: unknown, draft: ReplyDraft, errors: AnswerErrors): void {
  // The cast follows the API's documentation. Each field is checked before use.
  const message = wholeBody(answer, "content", errors) as unknown as Anthropic.Message;
  begin(message, draft);
  for (const [index, block] of fieldsOf(message.content).entries()) {
    // `takeBlock` checks the type and keeps a block of an unknown type unchanged.
    takeBlock(index, block as unknown as Anthropic.ContentBlock, draft);
    draft.endCall(index);
  }
  draft.stopReason = textOr(message.stop_reason, "end_turn");
}

export function takeAnthropicEvent(event: Anthropic.RawMessageStreamEvent, draft: ReplyDraft): void {
  switch (event.type) {
    case "message_start":
      return begin(event.message, draft);
    case "content_block_start":
      return takeBlock(event.index, event.content_block, draft);
    case "content_block_delta":
      return takeDelta(event.index, event.delta, draft);
    case "content_block_stop":
      return draft.endCall(event.index);
    case "message_delta":
      takeUsage(event.usage, draft);
      if (isFields(event.delta)) draft.stopReason = textOr(event.delta["stop_reason"], draft.stopReason);
      return;
    case "message_stop":
      draft.stopReason ??= "end_turn";
  }
}

/**
 * Maps the provider's stop reason to that of a record. A filtered answer is an error, because it must not be replayed.
 */
export function anthropicEnd(stopReason: string): ReplyEnd {
  if (stopReason === "tool_use") return { stopReason: "toolUse" };
  if (stopReason === "max_tokens" || stopReason === "model_context_window_exceeded") return { stopReason: "length" };
  if (stopReason !== "refusal") return { stopReason: "stop" };
  return { stopReason: "error", errorMessage: "The provider's filter ended the answer (refusal)." };
}

function begin(message: Anthropic.Message, draft: ReplyDraft): void {
  // Some servers that imitate this format omit the message or any of its fields.
  if (!isFields(message)) return;
  // History merges replies with the same response id. An empty id would therefore merge unrelated replies.
  draft.responseId = textOr(message.id, "") || null;
  draft.responseModel = textOr(message.model, "") || null;
  takeUsage(message.usage, draft);
}

/** Later values replace earlier ones. A value that the last event omits keeps the number from the first event. */
function takeUsage(usage: unknown, draft: ReplyDraft): void {
  if (!isFields(usage)) return;
  const stated = Object.entries(usage).filter(([, value]) => value !== null && value !== undefined);
  draft.usage = { ...draft.usage, ...Object.fromEntries(stated) };
  const details = usage["output_tokens_details"];
  const thinking = isFields(details) ? details["thinking_tokens"] : undefined;
  if (typeof thinking === "number") draft.reasoningTokens = thinking;
}

function takeBlock(index: number, block: Anthropic.ContentBlock, draft: ReplyDraft): void {
  if (!isFields(block)) return;
  switch (block.type) {
    case "text":
      draft.text(index, block.text);
      if (block.citations !== null && block.citations !== undefined)
        draft.textField(index, "citations", block.citations);
      return;
    case "thinking":
      draft.thinking(index, block.thinking);
      if (textOr(block.signature, "") !== "") draft.sign(index, block.signature);
      return;
    case "redacted_thinking":
      return draft.sign(index, block.data, true);
    case "tool_use":
      draft.call(index, textOr(block.id, ""), textOr(block.name, ""));
      // The input is empty when the arguments arrive in pieces. The pieces then take precedence.
      draft.input(index, block.input);
      return;
    default:
      return draft.raw(index, block as Fields);
  }
}

function takeDelta(index: number, delta: Anthropic.RawContentBlockDelta, draft: ReplyDraft): void {
  if (!isFields(delta)) return;
  switch (delta.type) {
    case "text_delta":
      return draft.text(index, delta.text);
    case "thinking_delta":
      return draft.thinking(index, delta.thinking);
    case "signature_delta":
      return draft.sign(index, delta.signature);
    case "input_json_delta":
      return draft.json(index, delta.partial_json);
    case "citations_delta":
      return draft.textItem(index, "citations", delta.citation);
  }
}
