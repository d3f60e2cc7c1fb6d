import { asText } from "./as-text.ts";
import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields } from "../wire-values.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts } from "./message-drafts.ts";
import { MessageReader } from "./message-reader.ts";
import { chatOrigin, recordFromCompletion, takeChatMessage } from "./openai-chat.ts";
import { recordFromResponse, responsesOrigin, takeItems } from "./openai-responses.ts";

/**
 * Converts messages for OpenAI into records to append. It is the inverse of `renderOpenAiChat` and of
 * `renderOpenAiResponses`. It recognizes Responses items by their `type`, or by parts called `input_…` and `output_…`.
 *
 * @param messages `ChatCompletionMessageParam[]` or `ResponseInputItem[]` that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value:
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
 * Converts a whole reply of OpenAI into the record to append.
 *
 * @param reply the `ChatCompletion`, or the `Response` of the Responses API
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.choices[0].message`
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
