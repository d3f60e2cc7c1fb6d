import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields } from "../wire-values.ts";
import {
  callBlock,
  textBlocks,
  thinkingBlocks,
  unknownBlock,
  type ReplyBlock,
  type UserBlock,
} from "./draft-blocks.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts, replyDraft, type MessageOrigin, type ReplyEnd } from "./message-drafts.ts";
import { fieldOf, MessageReader } from "./message-reader.ts";

const origin: MessageOrigin = { api: "anthropic-messages", provider: "anthropic" };

/**
 * Converts messages of Anthropic's API into records to append. It is the inverse of `renderAnthropic`. The system
 * prompt is not a message in this API, so the caller keeps it.
 *
 * @param messages `MessageParam[]` that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `messages[3].content[0].text`
 * @example await session.append(recordsFromMessages(messages, { model: "claude-sonnet-5" }));
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
 * Converts a whole reply of Anthropic's API into the record to append.
 *
 * @param reply the `Message` that `messages.create` or `finalMessage` of a stream gives
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.content[0].text`
 * @example await turn.append([recordFromReply(await client.messages.create(request), { model: request.model })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const { content, id, model, usage, stop_reason: stopReason } = reader.fields(reply, "reply");
  const blocks = reader
    .list(content, "reply.content")
    .map((block, at) => replyBlocks(block, `reply.content[${at}]`, reader));
  const details = isWireFields(usage) ? usage["output_tokens_details"] : null;
  const thinking = isWireFields(details) ? details["thinking_tokens"] : null;
  const envelope = {
    content: blocks.flat(),
    end: endOf(reader.textOrNull(stopReason, "reply.stop_reason") ?? "end_turn"),
    responseId: id,
    responseModel: model,
    usage,
    reasoningTokens: typeof thinking === "number" ? thinking : null,
  };
  return replyDraft(origin, envelope, options);
}

/** A filtered reply is an error, because it must not be replayed. */
function endOf(stopReason: string): ReplyEnd {
  if (stopReason === "tool_use") return { stopReason: "toolUse" };
  if (stopReason === "max_tokens" || stopReason === "model_context_window_exceeded") return { stopReason: "length" };
  if (stopReason !== "refusal") return { stopReason: "stop" };
  return { stopReason: "error", errorMessage: "The provider's filter ended the answer (refusal)." };
}

function takeMessage(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const { role: givenRole, content } = reader.fields(given, path);
  const role = reader.oneOf(givenRole, ["user", "assistant", "system"], `${path}.role`);
  const blocks =
    typeof content === "string" ? [{ type: "text", text: content }] : reader.list(content, `${path}.content`);
  const at = (index: number): string => (typeof content === "string" ? `${path}.content` : `${path}.content[${index}]`);
  if (role === "assistant") {
    return drafts.reply(blocks.flatMap((block, index) => replyBlocks(block, at(index), reader)));
  }
  if (role === "system")
    return drafts.system(
      role,
      blocks.map((block, index) => userBlock(block, at(index), reader)),
    );
  takeUser(blocks, at, drafts);
}

/** Tool results become their own records. The blocks between them become user messages. */
function takeUser(blocks: readonly unknown[], at: (index: number) => string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  let said: UserBlock[] = [];
  let hasResults = false;
  for (const [index, given] of blocks.entries()) {
    const block = reader.fields(given, at(index));
    if (block["type"] !== "tool_result") {
      said.push(userBlock(block, at(index), reader));
      continue;
    }
    if (said.length > 0) drafts.user(said);
    said = [];
    hasResults = true;
    const id = reader.text(block["tool_use_id"], `${at(index)}.tool_use_id`);
    drafts.result(id, resultContent(block["content"], `${at(index)}.content`, reader), block["is_error"] === true);
  }
  if (said.length > 0 || !hasResults) drafts.user(said);
}

function resultContent(content: unknown, path: string, reader: MessageReader): readonly UserBlock[] {
  if (typeof content === "string") return textBlocks(content);
  return reader.listOrNone(content, path).map((block, index) => userBlock(block, `${path}[${index}]`, reader));
}

/** Images, documents and other user blocks stay unchanged, because records can hold their format. */
function userBlock(given: unknown, path: string, reader: MessageReader): UserBlock {
  const block = reader.fields(given, path);
  const type = reader.text(block["type"], `${path}.type`);
  if (type === "text") return { ...block, type, text: reader.text(block["text"], `${path}.text`) };
  if (type === "image") return { ...block, type, source: reader.fields(block["source"], `${path}.source`) };
  return unknownBlock(block);
}

function replyBlocks(given: unknown, path: string, reader: MessageReader): readonly ReplyBlock[] {
  const block = reader.fields(given, path);
  switch (reader.text(block["type"], `${path}.type`)) {
    case "text": {
      const citations = fieldOf(block, "citations");
      const text = textBlocks(reader.text(block["text"], `${path}.text`));
      return citations === undefined ? text : text.map((one) => ({ ...one, citations }));
    }
    case "thinking": {
      const signature = reader.textOrNull(block["signature"], `${path}.signature`);
      return thinkingBlocks(reader.text(block["thinking"], `${path}.thinking`), signature);
    }
    case "redacted_thinking": {
      const data = reader.text(block["data"], `${path}.data`);
      return [{ type: "thinking", thinking: "", thinkingSignature: data, redacted: true }];
    }
    case "tool_use": {
      const id = reader.textOrNull(block["id"], `${path}.id`) ?? "";
      return [callBlock(id, reader.text(block["name"], `${path}.name`), block["input"])];
    }
    default:
      return [unknownBlock(block)];
  }
}
