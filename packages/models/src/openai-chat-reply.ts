import { isFields, type Fields } from "@throughline/core/internal";
import type OpenAI from "openai";
import { wholeBody, type AnswerErrors } from "./answer-body.ts";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** Adds a whole completion to the draft. @throws what `errors` make of anything else */
export function takeChatCompletion(answer: unknown, draft: ReplyDraft, errors: AnswerErrors): void {
  const completion = wholeBody(answer, "choices", errors);
  begin(completion, draft);
  const [choice] = fieldsOf(completion["choices"]);
  if (choice === undefined) throw errors.failureOf(completion);
  assertNoError(choice, errors);
  const message = isFields(choice["message"]) ? choice["message"] : {};
  takePiece(message, draft);
  takeCalls(message, draft);
  draft.stopReason = textOr(choice["finish_reason"], "stop");
}

/** Adds a chunk of a stream to the draft. @throws what `errors` make of one that says that the answer failed */
export function takeChatChunk(chunk: OpenAI.ChatCompletionChunk, draft: ReplyDraft, errors: AnswerErrors): void {
  // A chunk is plain JSON; the SDK's interface has no index signature.
  begin(chunk as unknown as Fields, draft);
  const [choice] = fieldsOf(chunk.choices);
  if (choice === undefined) return;
  assertNoError(choice, errors);
  if (isFields(choice["delta"])) {
    takePiece(choice["delta"], draft);
    takeCalls(choice["delta"], draft);
  }
  const finished = textOr(choice["finish_reason"], null);
  if (finished === null) return;
  draft.stopReason = finished;
  draft.endCalls();
}

/** Why the answer ended, as a record says it. What a filter ended is an error: it must not be replayed. */
export function chatEnd(finishReason: string): ReplyEnd {
  if (finishReason === "tool_calls" || finishReason === "function_call") return { stopReason: "toolUse" };
  if (finishReason === "length" || finishReason === "model_length") return { stopReason: "length" };
  if (finishReason === "content_filter") {
    return { stopReason: "error", errorMessage: "The provider's filter ended the answer (content_filter)." };
  }
  if (finishReason === "error" || finishReason === "insufficient_system_resource") {
    return { stopReason: "error", errorMessage: `The provider could not finish the answer (${finishReason}).` };
  }
  return { stopReason: "stop" };
}

function begin({ id, model, usage }: Fields, draft: ReplyDraft): void {
  draft.responseId = textOr(id, "") || draft.responseId;
  draft.responseModel = textOr(model, "") || draft.responseModel;
  if (isFields(usage)) draft.usage = usage;
}

/** A gateway says in the choice what went wrong behind it. */
function assertNoError(choice: Fields, { failureOf }: AnswerErrors): void {
  if (isFields(choice["error"])) throw failureOf(choice);
}

/**
 * Thinking has no place in OpenAI's own format; servers that show it call it `reasoning_content` (DeepSeek, vLLM, Qwen)
 * or `reasoning` (OpenRouter, Groq). What the model says in refusal is what it says.
 */
function takePiece(piece: Fields, draft: ReplyDraft): void {
  const wanted = textOr(piece["reasoning_content"], "");
  const thinking = wanted || textOr(piece["reasoning"], "");
  if (thinking !== "") draft.thinking("thinking", thinking);
  // DeepSeek and Kimi refuse the next call of a tool loop without it; pi keeps the field's name in this place, too.
  if (wanted !== "") draft.sign("thinking", "reasoning_content");
  takeContent(piece["content"], draft);
  const refusal = textOr(piece["refusal"], "");
  if (refusal !== "") draft.text("text", refusal);
}

/** A text; of Mistral's reasoning models a list, in which thinking stands beside text. */
function takeContent(content: unknown, draft: ReplyDraft): void {
  if (typeof content === "string" && content !== "") draft.text("text", content);
  for (const part of fieldsOf(content)) {
    if (part["type"] === "text") draft.text("text", textOr(part["text"], ""));
    else if (part["type"] === "thinking") draft.thinking("thinking", partsText(part["thinking"]));
  }
}

function partsText(parts: unknown): string {
  return typeof parts === "string"
    ? parts
    : fieldsOf(parts)
        .map((part) => textOr(part["text"], ""))
        .join("");
}

/** Calls, or the one call of the format before there were several, which has no id. */
function takeCalls({ tool_calls: calls, function_call: single }: Fields, draft: ReplyDraft): void {
  const listed = fieldsOf(calls);
  const all = listed.length === 0 && isFields(single) ? [{ function: single }] : listed;
  for (const [position, call] of all.entries()) takeCall(call, position, draft);
}

function takeCall(call: Fields, position: number, draft: ReplyDraft): void {
  const described = isFields(call["function"]) ? call["function"] : {};
  const given = described["arguments"];
  const piece = { id: textOr(call["id"], ""), name: textOr(described["name"], ""), arguments: given };
  // A whole message numbers nothing; some servers leave it out of the pieces, too, and send each call at once.
  const key = draft.numberedCall(typeof call["index"] === "number" ? call["index"] : position, piece);
  draft.call(key, piece.id, piece.name);
  if (typeof given === "string") draft.json(key, given);
  else draft.input(key, given);
}
