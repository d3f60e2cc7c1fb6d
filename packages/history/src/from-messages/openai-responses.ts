import { asText } from "./as-text.ts";
import type { ReplyDraft } from "@throughline/core/internal";
import { isWireFields, type WireFields } from "../wire-values.ts";
import {
  callBlock,
  mediaBlock,
  textBlocks,
  thinkingBlocks,
  unknownBlock,
  type ReplyBlock,
  type UserBlock,
} from "./draft-blocks.ts";
import type { RecordFromReplyOptions } from "./options.ts";
import { replyDraft, type MessageDrafts, type MessageOrigin, type ReplyEnd } from "./message-drafts.ts";
import type { MessageReader } from "./message-reader.ts";
import { takeResult } from "./openai-chat.ts";

export const responsesOrigin: MessageOrigin = { api: "openai-responses", provider: "openai" };

/**
 * Adds the items of a Responses request. Consecutive items of the model form one reply, because the model wrote them
 * together.
 */
export function takeItems(items: readonly unknown[], path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  let reply: ReplyBlock[] = [];
  const endReply = (): void => {
    if (reply.length > 0) drafts.reply(reply);
    reply = [];
  };
  for (const [index, given] of items.entries()) {
    const at = `${path}[${index}]`;
    const item = reader.fields(given, at);
    if (isOfReply(item)) {
      reply.push(...itemBlocks(item, at, reader));
    } else {
      endReply();
      takeOtherItem(item, at, drafts);
    }
  }
  endReply();
}

export function recordFromResponse(
  response: WireFields,
  reader: MessageReader,
  options: RecordFromReplyOptions,
): ReplyDraft {
  const content = reader
    .list(response["output"], "reply.output")
    .flatMap((item, at) => itemBlocks(reader.fields(item, `reply.output[${at}]`), `reply.output[${at}]`, reader));
  const envelope = {
    content,
    end: endOf(response),
    responseId: response["id"],
    responseModel: response["model"],
    usage: response["usage"],
  };
  return replyDraft(responsesOrigin, envelope, options);
}

/** A filtered reply is an error, because it must not be replayed. */
function endOf({ status, incomplete_details: incomplete, error }: WireFields): ReplyEnd {
  const reason = isWireFields(incomplete) ? incomplete["reason"] : null;
  if (status === "incomplete" && reason === "content_filter")
    return { stopReason: "error", errorMessage: "The provider's filter ended the answer (content_filter)." };
  if (status === "failed") {
    const said =
      isWireFields(error) && typeof error["message"] === "string" ? error["message"] : "The response failed.";
    return { stopReason: "error", errorMessage: said };
  }
  if (status === "cancelled") return { stopReason: "error", errorMessage: "The provider canceled the answer." };
  return { stopReason: status === "incomplete" || status === "in_progress" || status === "queued" ? "length" : "stop" };
}

/** A program answers items of the model with items of these types, so they end a reply. */
const answers = /(?:_output|_response)$/;

/** A program also adds these items. A message of another agent is a task or a result for this agent. */
const addedItems: ReadonlySet<unknown> = new Set([
  "item_reference",
  "additional_tools",
  "configuration_update",
  "compaction_trigger",
  "agent_message",
]);

function isOfReply(item: WireFields): boolean {
  const { type = "message", role } = item;
  if (type === "message") return role === "assistant";
  return !answers.test(asText(type)) && !addedItems.has(type);
}

function itemBlocks(item: WireFields, path: string, reader: MessageReader): readonly ReplyBlock[] {
  switch (reader.text(item["type"] ?? "message", `${path}.type`)) {
    case "message":
      return textsOf(item["content"], `${path}.content`, reader);
    case "function_call": {
      const id = reader.text(item["call_id"], `${path}.call_id`);
      return [callBlock(id, reader.text(item["name"], `${path}.name`), item["arguments"])];
    }
    case "custom_tool_call": {
      const id = reader.text(item["call_id"], `${path}.call_id`);
      return [callBlock(id, reader.text(item["name"], `${path}.name`), { input: item["input"] })];
    }
    case "reasoning": {
      const parts = [
        ...reader.listOrNone(item["summary"], `${path}.summary`),
        ...reader.listOrNone(item["content"], `${path}.content`),
      ];
      const texts = parts.map((part) => (isWireFields(part) && typeof part["text"] === "string" ? part["text"] : ""));
      // The provider needs the whole item back, so the record keeps the whole item.
      return thinkingBlocks(texts.join("\n\n"), JSON.stringify(item));
    }
    default:
      return [unknownBlock(item)];
  }
}

function textsOf(content: unknown, path: string, reader: MessageReader): readonly ReplyBlock[] {
  if (typeof content === "string") return textBlocks(content);
  return reader.list(content, path).flatMap((given, index): readonly ReplyBlock[] => {
    const part = reader.fields(given, `${path}[${index}]`);
    const { type, text, refusal } = part;
    if (type === "refusal") return textBlocks(reader.text(refusal, `${path}[${index}].refusal`));
    if (type === "output_text" || type === "input_text") return textBlocks(reader.text(text, `${path}[${index}].text`));
    return [unknownBlock(part)];
  });
}

function takeOtherItem(item: WireFields, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const type = reader.text(item["type"] ?? "message", `${path}.type`);
  if (type === "function_call_output" || type === "custom_tool_call_output") {
    const id = reader.text(item["call_id"], `${path}.call_id`);
    return takeResult(id, userBlocks(item["output"], `${path}.output`, reader), drafts);
  }
  if (type === "agent_message" && Array.isArray(item["content"]))
    return drafts.user(userBlocks(item["content"], `${path}.content`, reader));
  if (type !== "message") return drafts.user([unknownBlock(item)]);
  const role = reader.oneOf(item["role"], ["user", "assistant", "system", "developer"], `${path}.role`);
  const blocks = userBlocks(item["content"], `${path}.content`, reader);
  if (role === "system" || role === "developer") drafts.system(role, blocks);
  else drafts.user(blocks);
}

function userBlocks(content: unknown, path: string, reader: MessageReader): readonly UserBlock[] {
  if (typeof content === "string") return textBlocks(content);
  return reader.list(content, path).map((part, index) => userBlock(part, `${path}[${index}]`, reader));
}

function userBlock(given: unknown, path: string, reader: MessageReader): UserBlock {
  const part = reader.fields(given, path);
  const { image_url: image, file_data: data, file_url: url, filename, detail } = part;
  const name = typeof filename === "string" ? filename : null;
  switch (reader.text(part["type"], `${path}.type`)) {
    case "input_text":
      return { type: "text", text: reader.text(part["text"], `${path}.text`) };
    case "input_image":
      if (typeof image !== "string") return unknownBlock(part);
      return { ...mediaBlock("image", image), ...(detail === undefined || detail === "auto" ? {} : { detail }) };
    case "input_file":
      if (typeof data === "string") return mediaBlock("document", data, name);
      return typeof url === "string" ? mediaBlock("document", url, name) : unknownBlock(part);
    default:
      return unknownBlock(part);
  }
}
