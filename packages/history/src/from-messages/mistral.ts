import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";
import {
  mediaBlock,
  textBlocks,
  thinkingBlocks,
  unknownBlock,
  type ReplyBlock,
  type UserBlock,
} from "./draft-blocks.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts, replyDraft, type MessageOrigin } from "./message-drafts.ts";
import { fieldOf, MessageReader } from "./message-reader.ts";
import { chatCallBlocks, chatEndOf, takeResult } from "./openai-chat.ts";

const origin: MessageOrigin = { api: "mistral-chat", provider: "mistral" };

/**
 * Converts messages of Mistral's chat API into records to append. It is the inverse of `renderMistral`. It reads the
 * field names of the JSON and those of the SDK (`toolCalls`).
 *
 * @param messages the messages that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value:
 * `messages[3].tool_calls[0].id`
 * @example await session.append(recordsFromMessages(messages, { model: "mistral-large-latest" }));
 */
export function recordsFromMessages(
  messages: readonly unknown[],
  options: RecordsFromMessagesOptions = {},
): MessageDraft[] {
  const drafts = new MessageDrafts(origin, options);
  for (const [index, message] of drafts.reader.list(messages, "messages").entries())
    takeMessage(message, `messages[${index}]`, drafts);
  return drafts.list;
}

/**
 * Converts a whole reply of Mistral's chat API into the record to append.
 *
 * @param reply the `ChatCompletionResponse`, as JSON or as the SDK gives it
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.choices[0].message`
 * @example await turn.append([recordFromReply(await mistral.chat.complete(request), { model: request.model })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const fields = reader.fields(reply, "reply");
  const choice = reader.fields(reader.list(fields["choices"], "reply.choices")[0], "reply.choices[0]");
  const at = "reply.choices[0].message";
  const message = reader.fields(choice["message"], at);
  const finish = reader.textOrNull(fieldOf(choice, "finish_reason", "finishReason"), "reply.choices[0].finish_reason");
  const envelope = {
    content: replyBlocks(message, at, reader, () => ""),
    end: chatEndOf(finish ?? "stop"),
    responseId: fields["id"],
    responseModel: fields["model"],
    usage: wireUsage(fields["usage"]),
  };
  return replyDraft(origin, envelope, options);
}

/** The SDK renames the fields of the JSON, but records know only the JSON names. */
function wireUsage(usage: unknown): unknown {
  if (!isWireFields(usage) || usage["promptTokens"] === undefined) return usage;
  return { prompt_tokens: usage["promptTokens"], completion_tokens: usage["completionTokens"] };
}

function takeMessage(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const message = reader.fields(given, path);
  const { content } = message;
  const role = reader.oneOf(message["role"], ["user", "assistant", "system", "tool"], `${path}.role`);
  if (role === "assistant") return drafts.reply(replyBlocks(message, path, reader, () => drafts.calls.newId()));
  const blocks = userBlocks(role === "tool" ? (content ?? "") : content, `${path}.content`, reader);
  if (role === "user") return drafts.user(blocks);
  if (role === "system") return drafts.system(role, blocks);
  const name = reader.textOrNull(message["name"], `${path}.name`);
  const id = reader.textOrNull(fieldOf(message, "tool_call_id", "toolCallId"), `${path}.tool_call_id`);
  takeResult(id ?? drafts.calls.takeOldest(name), blocks, drafts, name);
}

function replyBlocks(
  message: WireFields,
  path: string,
  reader: MessageReader,
  newId: () => string,
): readonly ReplyBlock[] {
  const { content } = message;
  const at = `${path}.content`;
  const said =
    typeof content === "string"
      ? textBlocks(content)
      : reader.listOrNone(content, at).flatMap((chunk, index) => replyChunk(chunk, `${at}[${index}]`, reader));
  return [...said, ...chatCallBlocks(message, path, reader, newId)];
}

function replyChunk(given: unknown, path: string, reader: MessageReader): readonly ReplyBlock[] {
  const chunk = reader.fields(given, path);
  const { type, thinking } = chunk;
  if (type === "text") return textBlocks(reader.text(chunk["text"], `${path}.text`));
  if (type !== "thinking") return [unknownBlock(chunk)];
  if (typeof thinking === "string") return thinkingBlocks(thinking, null);
  const texts = reader.list(thinking, `${path}.thinking`).map((part, index) => {
    const { text } = reader.fields(part, `${path}.thinking[${index}]`);
    return typeof text === "string" ? text : "";
  });
  return thinkingBlocks(texts.join(""), null);
}

function userBlocks(content: unknown, path: string, reader: MessageReader): readonly UserBlock[] {
  if (typeof content === "string") return textBlocks(content);
  return reader.list(content, path).map((chunk, index) => userBlock(chunk, `${path}[${index}]`, reader));
}

function userBlock(given: unknown, path: string, reader: MessageReader): UserBlock {
  const chunk = reader.fields(given, path);
  switch (reader.text(chunk["type"], `${path}.type`)) {
    case "text":
      return { type: "text", text: reader.text(chunk["text"], `${path}.text`) };
    case "image_url": {
      const image = fieldOf(chunk, "image_url", "imageUrl");
      const url = isWireFields(image) ? image["url"] : image;
      return mediaBlock("image", reader.text(url, `${path}.image_url`));
    }
    case "document_url": {
      const name = reader.textOrNull(fieldOf(chunk, "document_name", "documentName"), `${path}.document_name`);
      const url = reader.text(fieldOf(chunk, "document_url", "documentUrl"), `${path}.document_url`);
      return mediaBlock("document", url, name);
    }
    default:
      return unknownBlock(chunk);
  }
}
