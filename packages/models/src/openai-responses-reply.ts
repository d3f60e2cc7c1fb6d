import { isFields, type Fields } from "@throughline/core/internal";
import type OpenAI from "openai";
import { wholeBody, type AnswerErrors } from "./answer-body.ts";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, textOr } from "./wire-fields.ts";

type ResponseEvent = OpenAI.Responses.ResponseStreamEvent;

/**
 * Adds a whole response to the draft. @throws the error that `errors` creates for a failed response and for any other
 * body
 */
export function takeResponse(answer: unknown, draft: ReplyDraft, errors: AnswerErrors): void {
  complete(wholeBody(answer, "output", errors), draft, errors);
}

/**
 * Adds the items of the final response only if no event delivered them before. A gateway that does not stream sends
 * nothing but the final event.
 */
function complete(response: Fields, draft: ReplyDraft, errors: AnswerErrors): void {
  begin(response, draft);
  const items = draft.isEmpty ? fieldsOf(response["output"]) : [];
  for (const [index, item] of items.entries()) takeItem(index, item, draft);
  finish(response, draft, errors);
}

/**
 * Adds an event of a stream to the draft. @throws the error that `errors` creates for an event that reports a failure
 */
export function takeResponseEvent(event: ResponseEvent, draft: ReplyDraft, errors: AnswerErrors): void {
  switch (event.type) {
    case "response.created":
      return begin(fieldsOr(event.response), draft);
    case "response.output_item.added":
      return beginItem(event.output_index, fieldsOr(event.item), draft);
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
      return endItem(event.output_index, fieldsOr(event.item), draft);
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      // The name of the event states the status in case the response inside omits it.
      return complete({ status: event.type.slice("response.".length), ...fieldsOr(event.response) }, draft, errors);
    case "error":
      // An event is plain JSON, but the SDK's interface has no index signature.
      throw errors.failureOf(event as unknown as Fields);
    default:
      return undefined;
  }
}

/**
 * Maps the status of a response to the stop reason of a record. A filtered answer is an error, because it must not be
 * replayed.
 */
export function responseEnd(word: string): ReplyEnd {
  if (word === "completed") return { stopReason: "stop" };
  if (word === "content_filter") {
    return { stopReason: "error", errorMessage: "The provider's filter ended the answer (content_filter)." };
  }
  if (word === "cancelled") return { stopReason: "error", errorMessage: "The provider canceled the answer." };
  return { stopReason: "length" };
}

function begin({ id, model, usage }: Fields, draft: ReplyDraft): void {
  draft.responseId = textOr(id, "") || draft.responseId;
  draft.responseModel = textOr(model, "") || draft.responseModel;
  if (isFields(usage)) draft.usage = usage;
}

/** The SDK returns a failed response like an answer, so this function throws. */
function finish(response: Fields, draft: ReplyDraft, { failureOf }: AnswerErrors): void {
  const { status, error, incomplete_details: incomplete } = response;
  if (status === "failed") throw failureOf(isFields(error) ? error : { message: "The response failed." });
  const reason = isFields(incomplete) ? textOr(incomplete["reason"], "") : "";
  draft.stopReason = status === "incomplete" ? reason || "incomplete" : textOr(status, "completed");
}

/**
 * Some servers send other values in place of an object. They count as an empty object, so that the answer is not lost.
 */
function fieldsOr(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function textKey(outputIndex: number, contentIndex: number): string {
  return `${outputIndex}.${contentIndex}`;
}

/** Separates the parts of a summary, because each part is a paragraph. */
function separate(outputIndex: number, summaryIndex: number, draft: ReplyDraft): void {
  if (summaryIndex > 0) draft.thinking(outputIndex, "\n\n");
}

function beginItem(index: number, item: Fields, draft: ReplyDraft): void {
  if (item["type"] === "function_call") draft.call(index, textOr(item["call_id"], ""), textOr(item["name"], ""));
}

/** Adds a finished item. It adds only the parts that the deltas did not carry, so that nothing appears twice. */
function endItem(index: number, item: Fields, draft: ReplyDraft): void {
  if (item["type"] === "message") return takeTexts(index, item, draft);
  if (item["type"] === "function_call") return takeCall(index, item, draft);
  if (item["type"] === "reasoning") return draft.sign(index, JSON.stringify(item));
  draft.raw(index, item);
}

function takeItem(index: number, item: Fields, draft: ReplyDraft): void {
  if (item["type"] === "reasoning") {
    const parts = [...fieldsOf(item["summary"]), ...fieldsOf(item["content"])];
    draft.thinking(index, parts.map((part) => textOr(part["text"], "")).join("\n\n"));
  }
  endItem(index, item, draft);
}

function takeTexts(index: number, item: Fields, draft: ReplyDraft): void {
  for (const [position, part] of fieldsOf(item["content"]).entries()) {
    draft.wholeText(textKey(index, position), textOr(part["text"], "") || textOr(part["refusal"], ""));
  }
}

function takeCall(index: number, item: Fields, draft: ReplyDraft): void {
  draft.call(index, textOr(item["call_id"], ""), textOr(item["name"], ""));
  draft.wholeJson(index, textOr(item["arguments"], ""));
  draft.endCall(index);
}
