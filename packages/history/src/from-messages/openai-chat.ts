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
import { fieldOf, type MessageReader } from "./message-reader.ts";

export const chatOrigin: MessageOrigin = { api: "openai-completions", provider: "openai" };

const roles = ["user", "assistant", "system", "developer", "tool", "function"] as const;

export function takeChatMessage(given: unknown, path: string, drafts: MessageDrafts): void {
  const { reader } = drafts;
  const message = reader.fields(given, path);
  const { content, name } = message;
  const role = reader.oneOf(message["role"], roles, `${path}.role`);
  switch (role) {
    case "assistant": {
      const blocks = chatReplyBlocks(message, path, reader, () => drafts.calls.newId());
      return drafts.reply(blocks);
    }
    case "system":
    case "developer":
      return drafts.system(role, userBlocks(content, `${path}.content`, reader));
    case "tool": {
      const id = reader.text(fieldOf(message, "tool_call_id"), `${path}.tool_call_id`);
      return takeResult(id, userBlocks(content ?? "", `${path}.content`, reader), drafts);
    }
    case "function": {
      const called = reader.text(name, `${path}.name`);
      return takeResult(drafts.calls.takeOldest(called), userBlocks(content ?? "", `${path}.content`, reader), drafts);
    }
    case "user":
      return drafts.user(userBlocks(content, `${path}.content`, reader), typeof name === "string" ? { name } : {});
  }
}

/** Builds the record of a completion. It reads only the first choice, because a record holds one reply. */
export function recordFromCompletion(
  completion: WireFields,
  reader: MessageReader,
  options: RecordFromReplyOptions,
): ReplyDraft {
  const [first] = reader.list(completion["choices"], "reply.choices");
  const choice = reader.fields(first, "reply.choices[0]");
  const message = reader.fields(choice["message"], "reply.choices[0].message");
  const finish = reader.textOrNull(choice["finish_reason"], "reply.choices[0].finish_reason") ?? "stop";
  const envelope = {
    content: chatReplyBlocks(message, "reply.choices[0].message", reader, () => ""),
    end: chatEndOf(finish),
    responseId: completion["id"],
    responseModel: completion["model"],
    usage: completion["usage"],
  };
  return replyDraft(chatOrigin, envelope, options);
}

/** A filtered reply is an error, because it must not be replayed. */
export function chatEndOf(finishReason: string): ReplyEnd {
  if (finishReason === "tool_calls" || finishReason === "function_call") return { stopReason: "toolUse" };
  if (finishReason === "length" || finishReason === "model_length") return { stopReason: "length" };
  if (finishReason === "content_filter")
    return { stopReason: "error", errorMessage: "The provider's filter ended the answer (content_filter)." };
  if (finishReason === "error" || finishReason === "insufficient_system_resource")
    return { stopReason: "error", errorMessage: `The provider could not finish the answer (${finishReason}).` };
  return { stopReason: "stop" };
}

/**
 * Chat formats have no error flag, so history marks failed results with a text prefix. This function reads that prefix.
 */
export function takeResult(
  id: string,
  blocks: readonly UserBlock[],
  drafts: MessageDrafts,
  name: string | null = null,
): void {
  const [first, ...rest] = blocks;
  const text = first?.type === "text" ? asText(first["text" as keyof typeof first]) : "";
  if (text === errorMark) return drafts.result(id, rest, true, name);
  if (!text.startsWith(`${errorMark} `)) return drafts.result(id, blocks, false, name);
  drafts.result(id, [...textBlocks(text.slice(errorMark.length + 1)), ...rest], true, name);
}

const errorMark = "[error]";

/**
 * OpenAI's own format has no field for thinking. Servers that send it use `reasoning_content` (DeepSeek, vLLM, Qwen) or
 * `reasoning` (OpenRouter, Groq). A refusal counts as the text of the reply.
 */
function chatReplyBlocks(
  message: WireFields,
  path: string,
  reader: MessageReader,
  newId: () => string,
): readonly ReplyBlock[] {
  const wanted = reader.textOrNull(message["reasoning_content"], `${path}.reasoning_content`) ?? "";
  const thinking = wanted || (reader.textOrNull(message["reasoning"], `${path}.reasoning`) ?? "");
  const refusal = reader.textOrNull(message["refusal"], `${path}.refusal`) ?? "";
  const said = contentBlocks(message["content"], `${path}.content`, reader);
  const { audio } = message;
  return [
    ...thinkingBlocks(thinking, wanted === "" ? null : "reasoning_content"),
    ...withRefusal(said, refusal),
    ...(isWireFields(audio) ? [{ ...audio, type: "audio" }] : []),
    ...chatCallBlocks(message, path, reader, newId),
  ];
}

/** The parts of an answer form one text, because a stream does not separate them either. */
function contentBlocks(content: unknown, path: string, reader: MessageReader): readonly ReplyBlock[] {
  if (typeof content === "string") return textBlocks(content);
  const found: ReplyBlock[] = [];
  let text = "";
  for (const [index, given] of reader.listOrNone(content, path).entries()) {
    const part = reader.fields(given, `${path}[${index}]`);
    const { type } = part;
    if (type === "text") text += reader.text(part["text"], `${path}[${index}].text`);
    else if (type === "refusal") text += reader.text(part["refusal"], `${path}[${index}].refusal`);
    else if (type === "thinking")
      found.push(...thinkingBlocks(partsText(part["thinking"], `${path}[${index}].thinking`, reader), null));
    else found.push(unknownBlock(part));
  }
  return [...found, ...textBlocks(text)];
}

function partsText(parts: unknown, path: string, reader: MessageReader): string {
  if (typeof parts === "string") return parts;
  const texts = reader.list(parts, path).map((part, index) => reader.fields(part, `${path}[${index}]`)["text"]);
  return texts.map((text) => (typeof text === "string" ? text : "")).join("");
}

function withRefusal(said: readonly ReplyBlock[], refusal: string): readonly ReplyBlock[] {
  const last = said.at(-1);
  if (refusal === "" || last?.type !== "text") return [...said, ...textBlocks(refusal)];
  return [...said.slice(0, -1), { type: "text", text: `${asText(last["text" as keyof typeof last])}${refusal}` }];
}

/** Reads the list of calls, or the single call of the older format, which has no id. */
export function chatCallBlocks(
  message: WireFields,
  path: string,
  reader: MessageReader,
  newId: () => string,
): readonly ReplyBlock[] {
  const listed = reader.listOrNone(fieldOf(message, "tool_calls", "toolCalls"), `${path}.tool_calls`);
  const single = message["function_call"];
  if (listed.length === 0 && isWireFields(single)) {
    const name = reader.text(single["name"], `${path}.function_call.name`);
    return [callBlock(newId(), name, single["arguments"])];
  }
  return listed.map((given, index) => callOf(given, `${path}.tool_calls[${index}]`, reader, newId));
}

function callOf(given: unknown, path: string, reader: MessageReader, newId: () => string): ReplyBlock {
  const call = reader.fields(given, path);
  const id = reader.textOrNull(call["id"], `${path}.id`) ?? newId();
  const { custom } = call;
  // A custom tool takes plain text, so its input need not be JSON.
  if (isWireFields(custom))
    return callBlock(id, reader.text(custom["name"], `${path}.custom.name`), { input: custom["input"] });
  const called = reader.fields(call["function"], `${path}.function`);
  return callBlock(id, reader.text(called["name"], `${path}.function.name`), called["arguments"]);
}

function userBlocks(content: unknown, path: string, reader: MessageReader): readonly UserBlock[] {
  if (typeof content === "string") return textBlocks(content);
  return reader.list(content, path).map((part, index) => userBlock(part, `${path}[${index}]`, reader));
}

function userBlock(given: unknown, path: string, reader: MessageReader): UserBlock {
  const part = reader.fields(given, path);
  switch (reader.text(part["type"], `${path}.type`)) {
    case "text":
      return { type: "text", text: reader.text(part["text"], `${path}.text`) };
    case "image_url": {
      const image = reader.fields(part["image_url"], `${path}.image_url`);
      const block = mediaBlock("image", reader.text(image["url"], `${path}.image_url.url`));
      const { detail } = image;
      return detail === undefined ? block : { ...block, detail };
    }
    case "file": {
      const file = reader.fields(part["file"], `${path}.file`);
      const { filename, file_data: data } = file;
      if (typeof data !== "string") return unknownBlock(part);
      return mediaBlock("document", data, typeof filename === "string" ? filename : null);
    }
    default:
      return unknownBlock(part);
  }
}
