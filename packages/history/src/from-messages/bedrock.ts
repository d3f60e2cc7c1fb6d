import type { MessageDraft, ReplyDraft } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";
import { base64Of } from "./bytes.ts";
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
import { MessageReader } from "./message-reader.ts";

const origin: MessageOrigin = { api: "bedrock-converse", provider: "amazon-bedrock" };

/**
 * Converts messages of Bedrock's Converse API into records to append. It is the inverse of `renderBedrock`. Bytes may
 * be base64 as in JSON, or a `Uint8Array` as in the SDK.
 *
 * @param messages `Message[]` that an agent loop has collected so far
 * @param options `model` and `provider` that wrote the replies; without a model their thinking is not sent back
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `messages[3].content[0]`
 * @example await session.append(recordsFromMessages(messages, { model: "anthropic.claude-sonnet-5" }));
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
 * Converts a whole reply of Bedrock's Converse API into the record to append. The reply names no model, so pass
 * `options.model`.
 *
 * @param reply the output of `ConverseCommand`
 * @param options the requested `model`, and `provider`
 * @throws {ThroughlineError} INPUT_INVALID, which names the path of the unreadable value: `reply.output.message`
 * @example await turn.append([recordFromReply(await client.send(command), { model: modelId })]);
 */
export function recordFromReply(reply: unknown, options: RecordFromReplyOptions = {}): ReplyDraft {
  assertReplyOptions(options);
  const reader = new MessageReader("recordFromReply");
  const fields = reader.fields(reply, "reply");
  const { message: given } = reader.fields(fields["output"], "reply.output");
  const message = reader.fields(given, "reply.output.message");
  const at = "reply.output.message.content";
  const blocks = reader
    .list(message["content"], at)
    .map((block, index) => replyBlocks(block, `${at}[${index}]`, reader));
  const envelope = {
    content: blocks.flat(),
    end: endOf(reader.textOrNull(fields["stopReason"], "reply.stopReason") ?? "end_turn"),
    responseId: null,
    responseModel: null,
    usage: fields["usage"],
  };
  return replyDraft(origin, envelope, options);
}

/** A filtered reply is an error, because it must not be replayed. */
function endOf(stopReason: string): ReplyEnd {
  if (stopReason === "tool_use") return { stopReason: "toolUse" };
  if (stopReason === "max_tokens" || stopReason === "model_context_window_exceeded") return { stopReason: "length" };
  if (!failures.has(stopReason)) return { stopReason: "stop" };
  return { stopReason: "error", errorMessage: `The provider ended the answer (${stopReason}).` };
}

const failures: ReadonlySet<string> = new Set([
  "guardrail_intervened",
  "content_filtered",
  "malformed_model_output",
  "malformed_tool_use",
]);

function takeMessage(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const { role: givenRole, content } = reader.fields(given, path);
  const role = reader.oneOf(givenRole, ["user", "assistant"], `${path}.role`);
  const blocks = reader.list(content, `${path}.content`);
  const at = (index: number): string => `${path}.content[${index}]`;
  if (role === "assistant")
    return drafts.reply(blocks.flatMap((block, index) => replyBlocks(block, at(index), reader)));
  let said: UserBlock[] = [];
  let hasResults = false;
  for (const [index, givenBlock] of blocks.entries()) {
    const { toolResult, ...block } = reader.fields(givenBlock, at(index));
    if (toolResult === undefined) {
      said.push(userBlock(block, at(index), reader));
      continue;
    }
    if (said.length > 0) drafts.user(said);
    said = [];
    hasResults = true;
    takeToolResult(reader.fields(toolResult, `${at(index)}.toolResult`), `${at(index)}.toolResult`, drafts);
  }
  if (said.length > 0 || !hasResults) drafts.user(said);
}

function takeToolResult(result: WireFields, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const id = reader.text(result["toolUseId"], `${path}.toolUseId`);
  const blocks = reader
    .listOrNone(result["content"], `${path}.content`)
    .map((block, index) =>
      userBlock(reader.fields(block, `${path}.content[${index}]`), `${path}.content[${index}]`, reader),
    );
  drafts.result(id, blocks, result["status"] === "error");
}

function userBlock(block: WireFields, path: string, reader: MessageReader): UserBlock {
  const { text, image, document, json } = block;
  if (text !== undefined) return { type: "text", text: reader.text(text, `${path}.text`) };
  if (json !== undefined) return { type: "text", text: JSON.stringify(json) };
  if (image !== undefined) {
    const { format, source } = reader.fields(image, `${path}.image`);
    const data = bytesOf(reader.fields(source, `${path}.image.source`));
    if (data === null) return unknownBlock(block);
    return { type: "image", data, mimeType: `image/${reader.text(format, `${path}.image.format`)}` };
  }
  if (document === undefined) return unknownBlock(block);
  const { format, source, name } = reader.fields(document, `${path}.document`);
  const data = bytesOf(reader.fields(source, `${path}.document.source`));
  if (data === null) return unknownBlock(block);
  const mediaType = documentTypes[reader.text(format, `${path}.document.format`)] ?? String(format);
  const named = typeof name === "string" ? { title: name } : {};
  return { type: "document", source: { type: "base64", media_type: mediaType, data }, ...named };
}

/** Returns null for a source in a bucket, which has no bytes here. */
function bytesOf({ bytes }: WireFields): string | null {
  return typeof bytes === "string" ? bytes : base64Of(bytes);
}

const documentTypes: Readonly<Record<string, string>> = {
  pdf: "application/pdf",
  csv: "text/csv",
  html: "text/html",
  txt: "text/plain",
  md: "text/markdown",
  doc: "application/msword",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xls: "application/vnd.ms-excel",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

function replyBlocks(given: unknown, path: string, reader: MessageReader): readonly ReplyBlock[] {
  const block = reader.fields(given, path);
  const { text, toolUse, reasoningContent } = block;
  if (text !== undefined) return textBlocks(reader.text(text, `${path}.text`));
  if (toolUse !== undefined) {
    const { toolUseId, name, input } = reader.fields(toolUse, `${path}.toolUse`);
    const id = reader.text(toolUseId, `${path}.toolUse.toolUseId`);
    return [callBlock(id, reader.text(name, `${path}.toolUse.name`), input)];
  }
  if (reasoningContent === undefined) return [unknownBlock(block)];
  const { reasoningText, redactedContent } = reader.fields(reasoningContent, `${path}.reasoningContent`);
  const redacted = base64Of(redactedContent) ?? redactedContent;
  if (typeof redacted === "string")
    return [{ type: "thinking", thinking: "", thinkingSignature: redacted, redacted: true }];
  if (!isWireFields(reasoningText)) return [unknownBlock(block)];
  const signature = reader.textOrNull(reasoningText["signature"], `${path}.reasoningContent.reasoningText.signature`);
  return thinkingBlocks(reader.text(reasoningText["text"], `${path}.reasoningContent.reasoningText.text`), signature);
}
