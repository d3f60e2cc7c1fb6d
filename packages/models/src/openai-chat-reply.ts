import { isFields, type Fields } from "@throughline/core/internal";
import type OpenAI from "openai";
import { wholeBody, type AnswerErrors } from "./answer-body.ts";
import type { ReplyDraft, ReplyEnd } from "./reply-draft.ts";
import { fieldsOf, textOr } from "./wire-fields.ts";

/** Adds a whole completion to the draft. @throws the error that `errors` creates for any other body */
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

/** Adds a chunk of a stream to the draft. @throws the error that `errors` creates for a chunk that reports a failure */
export function takeChatChunk(chunk: OpenAI.ChatCompletionChunk, draft: ReplyDraft, errors: AnswerErrors): void {
  // A chunk is plain JSON, but the SDK's interface has no index signature.
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

/**
 * Maps the provider's finish reason to the stop reason of a record. A filtered answer is an error, because it must not
 * be replayed.
 */
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

/** A gateway reports the failure of the server behind it inside the choice. */
function assertNoError(choice: Fields, { failureOf }: AnswerErrors): void {
  if (isFields(choice["error"])) throw failureOf(choice);
}

/**
 * OpenAI's own format has no field for thinking. Servers that send it use `reasoning_content` (DeepSeek, vLLM, Qwen) or
 * `reasoning` (OpenRouter, Groq). A refusal counts as the text of the answer.
 */
function takePiece(piece: Fields, draft: ReplyDraft): void {
  const wanted = textOr(piece["reasoning_content"], "");
  const thinking = wanted || textOr(piece["reasoning"], "");
  if (thinking !== "") draft.thinking("thinking", thinking);
  // DeepSeek and Kimi reject the next call of a tool loop without this field. pi also stores the field's name as the
  // signature.
  if (wanted !== "") draft.sign("thinking", "reasoning_content");
  takeContent(piece["content"], draft);
  const refusal = textOr(piece["refusal"], "");
  if (refusal !== "") draft.text("text", refusal);
}

/** The content is a text. Mistral's reasoning models send a list instead, which mixes thinking and text. */
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

/** Reads the list of calls, or the single call of the older format, which has no id. */
function takeCalls({ tool_calls: calls, function_call: single }: Fields, draft: ReplyDraft): void {
  const listed = fieldsOf(calls);
  const all = listed.length === 0 && isFields(single) ? [{ function: single }] : listed;
  for (const [position, call] of all.entries()) takeCall(call, position, draft);
}

function takeCall(call: Fields, position: number, draft: ReplyDraft): void {
  const described = isFields(call["function"]) ? call["function"] : {};
  const given = described["arguments"];
  const piece = { id: textOr(call["id"], ""), name: textOr(described["name"], ""), arguments: given };
  // The calls of a whole message have no index. Some servers omit it in streams too, and send each call in one piece.
  const key = draft.numberedCall(typeof call["index"] === "number" ? call["index"] : position, piece);
  draft.call(key, piece.id, piece.name);
  if (typeof given === "string") draft.json(key, given);
  else draft.input(key, given);
}
