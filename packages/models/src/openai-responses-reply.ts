import type OpenAI from "openai";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, isFields, textOr, type WireFields } from "./wire-fields.ts";

type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;

/** Makes the SDK's error of what a response of status 200 says went wrong. */
export type FailureOf = (error: WireFields) => Error;

/** Adds a whole response to the draft. @throws what `failureOf` makes, when the response failed */
export function takeResponse(response: OpenAI.Responses.Response, draft: ReplyDraft, failureOf: FailureOf): void {
  begin(response, draft);
  for (const [index, item] of fieldsOf(response.output).entries()) takeItem(index, item, draft);
  finish(response, draft, failureOf);
}

/** Adds an event of a stream to the draft. @throws what `failureOf` makes, when the response failed */
export function takeResponseEvent(event: ResponseEvent, draft: ReplyDraft, failureOf: FailureOf): void {
  switch (event.type) {
    case "response.created":
      return begin(event.response, draft);
    case "response.output_item.added":
      return beginItem(event.output_index, event.item as unknown as WireFields, draft);
    case "response.output_text.delta":
    case "response.refusal.delta":
      return draft.text(textKey(event.output_index, event.content_index), event.delta);
    case "response.reasoning_summary_part.added":
      return separate(event.output_index, event.summary_index, draft);
    case "response.reasoning_summary_text.delta":
    case "response.reasoning_text.delta":
      return draft.thinking(event.output_index, event.delta);
    case "response.function_call_arguments.delta":
      return draft.json(event.output_index, event.delta);
    case "response.output_item.done":
      return endItem(event.output_index, event.item as unknown as WireFields, draft);
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      begin(event.response, draft);
      return finish(event.response, draft, failureOf);
    case "error":
      throw failureOf(event as unknown as WireFields);
    default:
      return undefined;
  }
}

/** Why the answer ended, as a record says it. What a filter ended is an error: it must not be replayed. */
export function responseEnd(word: string): ReplyEnd {
  if (word === "completed") return { stopReason: "stop" };
  if (word === "content_filter") {
    return { stopReason: "error", errorMessage: "The provider's filter ended the answer (content_filter)." };
  }
  if (word === "cancelled") return { stopReason: "error", errorMessage: "The provider cancelled the answer." };
  return { stopReason: "length" };
}

function begin(response: OpenAI.Responses.Response, draft: ReplyDraft): void {
  if (textOr(response.id, "") !== "") draft.responseId = response.id;
  if (textOr(response.model, "") !== "") draft.responseModel = response.model;
  if (isFields(response.usage)) draft.usage = response.usage as unknown as WireFields;
}

function finish(response: OpenAI.Responses.Response, draft: ReplyDraft, failureOf: FailureOf): void {
  const { status, error, incomplete_details: incomplete } = response;
  if (status === "failed") {
    throw failureOf(isFields(error) ? (error as unknown as WireFields) : { message: "The response failed." });
  }
  draft.stopReason = status === "incomplete" ? (incomplete?.reason ?? "incomplete") : (status ?? "completed");
}

function textKey(outputIndex: number, contentIndex: number): string {
  return `${outputIndex}.${contentIndex}`;
}

/** Parts of a summary are paragraphs. */
function separate(outputIndex: number, summaryIndex: number, draft: ReplyDraft): void {
  if (summaryIndex > 0) draft.thinking(outputIndex, "\n\n");
}

function beginItem(index: number, item: WireFields, draft: ReplyDraft): void {
  if (item["type"] === "function_call") draft.call(index, textOr(item["call_id"], ""), textOr(item["name"], ""));
}

/** The whole item: what the deltas did not carry, and nothing twice. */
function endItem(index: number, item: WireFields, draft: ReplyDraft): void {
  if (item["type"] === "message") return;
  if (item["type"] === "function_call") return takeCall(index, item, draft);
  if (item["type"] === "reasoning") return draft.sign(index, JSON.stringify(item));
  draft.raw(index, item);
}

function takeItem(index: number, item: WireFields, draft: ReplyDraft): void {
  if (item["type"] === "message") {
    for (const [position, part] of fieldsOf(item["content"]).entries()) {
      draft.text(textKey(index, position), textOr(part["text"], "") || textOr(part["refusal"], ""));
    }
    return;
  }
  if (item["type"] === "reasoning") {
    const parts = [...fieldsOf(item["summary"]), ...fieldsOf(item["content"])];
    draft.thinking(index, parts.map((part) => textOr(part["text"], "")).join("\n\n"));
  }
  endItem(index, item, draft);
}

function takeCall(index: number, item: WireFields, draft: ReplyDraft): void {
  draft.call(index, textOr(item["call_id"], ""), textOr(item["name"], ""));
  draft.wholeJson(index, textOr(item["arguments"], ""));
  draft.endCall(index);
}
