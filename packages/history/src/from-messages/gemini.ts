import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";
import { base64Of } from "./bytes.ts";
import { callBlock, textBlocks, unknownBlock, type ReplyBlock, type UserBlock } from "./draft-blocks.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts, replyDraft, type MessageOrigin, type ReplyEnd } from "./message-drafts.ts";
import { MessageReader } from "./message-reader.ts";

const origin: MessageOrigin = { api: "google-generative-ai", provider: "google" };

/**
 * Converts contents of Gemini's API into records to append. It is the inverse of `renderGemini`. Calls without ids get
 * one, and a response answers the oldest open call of its function.
 *
 * @param messages `Content[]` that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `messages[3].parts[0]`
 * @example await session.append(recordsFromMessages(contents, { model: "gemini-3-pro" }));
 */
export function recordsFromMessages(
  messages: readonly unknown[],
  options: RecordsFromMessagesOptions = {},
): MessageDraft[] {
  const drafts = new MessageDrafts(origin, options);
  for (const [index, content] of drafts.reader.list(messages, "messages").entries())
    takeContent(content, `messages[${index}]`, drafts);
  return drafts.list;
}

/**
 * Converts a whole reply of Gemini's API into the record to append.
 *
 * @param reply the `GenerateContentResponse`
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.candidates[0].content`
 * @example await turn.append([recordFromReply(await ai.models.generateContent(request), { model: request.model })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const fields = reader.fields(reply, "reply");
  const { promptFeedback: feedback } = fields;
  const blocked = isWireFields(feedback)
    ? reader.textOrNull(feedback["blockReason"], "reply.promptFeedback.blockReason")
    : null;
  const candidates = blocked === null ? reader.list(fields["candidates"], "reply.candidates") : [];
  const first = blocked === null ? reader.fields(candidates[0], "reply.candidates[0]") : {};
  const content = first["content"] === undefined ? {} : reader.fields(first["content"], "reply.candidates[0].content");
  const at = "reply.candidates[0].content.parts";
  const parts = reader.listOrNone(content["parts"], at);
  const reason = blocked ?? reader.textOrNull(first["finishReason"], "reply.candidates[0].finishReason") ?? "STOP";
  const envelope = {
    content: parts.map((part, index) => replyBlock(part, `${at}[${index}]`, reader, () => "")),
    end: endOf(reason),
    responseId: fields["responseId"],
    responseModel: fields["modelVersion"],
    usage: fields["usageMetadata"],
  };
  return replyDraft(origin, envelope, options);
}

/** A filtered reply or a failed call is an error, because it must not be replayed. */
function endOf(reason: string): ReplyEnd {
  if (reason === "STOP" || reason === "FINISH_REASON_UNSPECIFIED") return { stopReason: "stop" };
  if (reason === "MAX_TOKENS") return { stopReason: "length" };
  return { stopReason: "error", errorMessage: `The provider ended the answer (${reason}).` };
}

function takeContent(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const { role: givenRole = "user", parts: givenParts } = reader.fields(given, path);
  const role = reader.oneOf(givenRole, ["user", "model", "function", "system"], `${path}.role`);
  const parts = reader.list(givenParts, `${path}.parts`);
  const at = (index: number): string => `${path}.parts[${index}]`;
  if (role === "model")
    return drafts.reply(parts.map((part, index) => replyBlock(part, at(index), reader, () => drafts.calls.newId())));
  if (role === "system")
    return drafts.system(
      role,
      parts.map((part, index) => userBlock(part, at(index), reader)),
    );
  let said: UserBlock[] = [];
  let hasResults = false;
  for (const [index, givenPart] of parts.entries()) {
    const part = reader.fields(givenPart, at(index));
    if (part["functionResponse"] === undefined) {
      said.push(userBlock(part, at(index), reader));
      continue;
    }
    if (said.length > 0) drafts.user(said);
    said = [];
    hasResults = true;
    takeResponse(part["functionResponse"], `${at(index)}.functionResponse`, drafts);
  }
  if (said.length > 0 || !hasResults) drafts.user(said);
}

/** Responses that this package rendered hold one text. Other programs may send any object, which is kept as JSON. */
function takeResponse(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const answered = reader.fields(given, path);
  const name = reader.text(answered["name"], `${path}.name`);
  const response = reader.fields(answered["response"] ?? {}, `${path}.response`);
  const id = reader.textOrNull(answered["id"], `${path}.id`) ?? drafts.calls.takeOldest(name);
  const names = Object.keys(response);
  const { output, error } = response;
  if (names.length === 1 && typeof output === "string") return drafts.result(id, textBlocks(output), false, name);
  if (names.length === 1 && typeof error === "string") return drafts.result(id, textBlocks(error), true, name);
  const json = names.length === 0 ? "" : JSON.stringify(response);
  drafts.result(id, textBlocks(json), error !== undefined && error !== null, name);
}

function replyBlock(given: unknown, path: string, reader: MessageReader, newId: () => string): ReplyBlock {
  const part = reader.fields(given, path);
  const { text, thought, thoughtSignature, functionCall } = part;
  const signature = reader.textOrNull(thoughtSignature, `${path}.thoughtSignature`);
  if (functionCall !== undefined) {
    const call = reader.fields(functionCall, `${path}.functionCall`);
    const id = reader.textOrNull(call["id"], `${path}.functionCall.id`) || newId();
    const block = callBlock(id, reader.text(call["name"], `${path}.functionCall.name`), call["args"]);
    return signature === null ? block : { ...block, thoughtSignature: signature };
  }
  if (text === undefined || text === null) return unknownBlock(part);
  const said = reader.text(text, `${path}.text`);
  if (thought === true)
    return { type: "thinking", thinking: said, ...(signature === null ? {} : { thinkingSignature: signature }) };
  return { type: "text", text: said, ...(signature === null ? {} : { textSignature: signature }) };
}

function userBlock(given: unknown, path: string, reader: MessageReader): UserBlock {
  const part = reader.fields(given, path);
  const { text, inlineData, fileData } = part;
  if (typeof text === "string") return { type: "text", text };
  if (inlineData !== undefined)
    return inlineBlock(reader.fields(inlineData, `${path}.inlineData`), `${path}.inlineData`, reader);
  if (fileData !== undefined)
    return linkedBlock(reader.fields(fileData, `${path}.fileData`), `${path}.fileData`, reader);
  return unknownBlock(part);
}

function inlineBlock(inline: WireFields, path: string, reader: MessageReader): UserBlock {
  const { data: given, mimeType: givenType, displayName } = inline;
  const data = base64Of(given) ?? reader.text(given, `${path}.data`);
  const mimeType = reader.textOrNull(givenType, `${path}.mimeType`) ?? "";
  if (mimeType.startsWith("image/")) return { type: "image", data, mimeType };
  const named = typeof displayName === "string" ? { title: displayName } : {};
  return { type: "document", source: { type: "base64", media_type: mimeType, data }, ...named };
}

function linkedBlock(linked: WireFields, path: string, reader: MessageReader): UserBlock {
  const url = reader.text(linked["fileUri"], `${path}.fileUri`);
  const { mimeType } = linked;
  const isImage = typeof mimeType === "string" && mimeType.startsWith("image/");
  const typed = typeof mimeType === "string" ? { media_type: mimeType } : {};
  return { type: isImage ? "image" : "document", source: { type: "url", url, ...typed } };
}
