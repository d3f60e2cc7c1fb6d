import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { imageTypeOf } from "../media-source.ts";
import type { WireFields } from "../wire-values.ts";
import { callBlock, textBlocks, thinkingBlocks, type ReplyBlock, type UserBlock } from "./draft-blocks.ts";
import type { RecordFromReplyOptions, RecordsFromMessagesOptions } from "./options.ts";
import { assertReplyOptions, MessageDrafts, replyDraft, type MessageOrigin } from "./message-drafts.ts";
import { fieldOf, MessageReader } from "./message-reader.ts";
import { base64Of } from "./bytes.ts";
import { takeResult } from "./openai-chat.ts";

const origin: MessageOrigin = { api: "ollama", provider: "ollama" };

/**
 * Converts messages of Ollama's chat API into records to append. It is the inverse of `renderOllama`. Calls have no ids
 * in this API. Each call gets one, and a result answers the oldest open call of its tool.
 *
 * @param messages `Message[]` that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `messages[3].tool_calls[0]`
 * @example await session.append(recordsFromMessages(messages, { model: "qwen3:8b" }));
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
 * Converts a whole reply of Ollama's chat API into the record to append.
 *
 * @param reply the `ChatResponse` that `chat` gives; join the parts of a stream first
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.message`
 * @example await turn.append([recordFromReply(await ollama.chat(request), { model: request.model })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const fields = reader.fields(reply, "reply");
  const { message, done, done_reason: doneReason, prompt_eval_count: prompt, eval_count: output } = fields;
  if (done !== true) reader.refuse(done, "true: a part of a stream is no reply", "reply.done");
  const envelope = {
    content: replyBlocks(reader.fields(message, "reply.message"), "reply.message", reader, () => ""),
    end: { stopReason: doneReason === "length" ? ("length" as const) : ("stop" as const) },
    responseId: null,
    responseModel: fields["model"],
    usage: { prompt_eval_count: prompt, eval_count: output },
  };
  return replyDraft(origin, envelope, options);
}

function takeMessage(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const message = reader.fields(given, path);
  const role = reader.oneOf(message["role"], ["user", "assistant", "system", "tool"], `${path}.role`);
  if (role === "assistant") return drafts.reply(replyBlocks(message, path, reader, () => drafts.calls.newId()));
  const blocks = [
    ...textBlocks(reader.textOrNull(message["content"], `${path}.content`) ?? ""),
    ...imageBlocks(message["images"], `${path}.images`, reader),
  ];
  if (role === "user") return drafts.user(blocks);
  if (role === "system") return drafts.system(role, blocks);
  const name = reader.textOrNull(fieldOf(message, "tool_name", "name"), `${path}.tool_name`);
  const id = reader.textOrNull(fieldOf(message, "tool_call_id"), `${path}.tool_call_id`);
  takeResult(id ?? drafts.calls.takeOldest(name), blocks, drafts, name);
}

function imageBlocks(images: unknown, path: string, reader: MessageReader): readonly UserBlock[] {
  return reader.listOrNone(images, path).map((image, index) => {
    const data = base64Of(image) ?? reader.text(image, `${path}[${index}]`);
    // Ollama's messages state no media type, but a record without one could not be displayed.
    return { type: "image", data, mimeType: imageTypeOf(data) ?? "image/png" };
  });
}

function replyBlocks(
  message: WireFields,
  path: string,
  reader: MessageReader,
  newId: () => string,
): readonly ReplyBlock[] {
  const calls = reader.listOrNone(message["tool_calls"], `${path}.tool_calls`).map((given, index) => {
    const at = `${path}.tool_calls[${index}]`;
    const call = reader.fields(given, at);
    const called = reader.fields(call["function"], `${at}.function`);
    const id = reader.textOrNull(call["id"], `${at}.id`) || newId();
    return callBlock(id, reader.text(called["name"], `${at}.function.name`), called["arguments"]);
  });
  return [
    ...thinkingBlocks(reader.textOrNull(message["thinking"], `${path}.thinking`) ?? "", null),
    ...textBlocks(reader.textOrNull(message["content"], `${path}.content`) ?? ""),
    ...calls,
  ];
}
