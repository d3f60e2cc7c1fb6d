import { asText } from "./as-text.ts";
import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields } from "../wire-values.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts } from "./message-drafts.ts";
import { MessageReader } from "./message-reader.ts";
import { chatOrigin, recordFromCompletion, takeChatMessage } from "./openai-chat.ts";
import { recordFromResponse, responsesOrigin, takeItems } from "./openai-responses.ts";

/**
 * Turns messages for OpenAI into records to append: the inverse of `renderOpenAiChat` and of `renderOpenAiResponses`.
 * Only items have a `type`, or parts called `input_…` and `output_…`, which shows which of the two they are.
 *
 * @param messages `ChatCompletionMessageParam[]` or `ResponseInputItem[]`: what a loop of one's own has kept so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the place of what cannot be read:
 * `messages[3].tool_calls[0].id`
 * @example await session.append(recordsFromMessages(messages, { model: "gpt-5" }));
 */
export function recordsFromMessages(
  messages: readonly unknown[],
  options: RecordsFromMessagesOptions = {},
): MessageDraft[] {
  const areItems = Array.isArray(messages) && messages.some(isItem);
  const drafts = new MessageDrafts(areItems ? responsesOrigin : chatOrigin, options);
  const list = drafts.reader.list(messages, "messages");
  if (areItems) takeItems(list, "messages", drafts);
  else for (const [index, message] of list.entries()) takeChatMessage(message, `messages[${index}]`, drafts);
  return drafts.list;
}

/**
 * Turns a whole reply of OpenAI into the record to append.
 *
 * @param reply the `ChatCompletion`, or the `Response` of the Responses API
 * @param options `model` that was asked for, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the place of what cannot be read: `reply.choices[0].message`
 * @example await turn.append([recordFromReply(await client.responses.create(request), { model: request.model })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const fields = reader.fields(reply, "reply");
  if (fields["output"] !== undefined) return recordFromResponse(fields, reader, options);
  return recordFromCompletion(fields, reader, options);
}

function isItem(message: unknown): boolean {
  if (!isWireFields(message)) return false;
  const { type, content } = message;
  if (type !== undefined) return true;
  return (
    Array.isArray(content) &&
    content.some((part) => isWireFields(part) && /^(?:input|output)_(?!audio)/.test(asText(part["type"])))
  );
}
