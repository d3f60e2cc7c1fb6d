import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { blockBodies } from "../block-messages.ts";
import type { MessageList, ReadElement } from "../message-list.ts";
import { toldBodies } from "./ui-messages.ts";
import { fileSource } from "./ui-parts.ts";

/** Reads the messages that the AI SDK passes to a model, in provider specifications 3 and 4. */
export class PromptMessages implements MessageList {
  readonly name = "ai-sdk";
  readonly sessionId = null;
  readonly entry = {};

  frame(): { readonly bodies: readonly [] } {
    return { bodies: [] };
  }

  element(value: Fields): ReadElement {
    const { role } = value;
    const bodies =
      role === "assistant" ? replyBodies(value) : role === "tool" ? resultBodies(value) : toldBodies(withParts(value));
    return { bodies: bodies ?? [], isUnreadable: bodies === null };
  }
}

/** The parts are converted to the form of the user interface, where files are URLs, so that one reader serves both. */
function withParts(value: Fields): Fields {
  const { content } = value;
  if (typeof content === "string") return { role: value["role"], parts: [{ type: "text", text: content }] };
  return { role: value["role"], parts: partsOf(content).map(uiPart) };
}

function partsOf(content: unknown): readonly Fields[] {
  return Array.isArray(content) ? (content as readonly unknown[]).filter(isFields) : [];
}

function uiPart(part: Fields): Fields {
  if (part["type"] !== "file") return part;
  const { mediaType, filename } = part;
  const url = addressOf(part["data"], asText(mediaType));
  return { type: "file", mediaType, ...(filename === undefined ? {} : { filename }), ...(url === null ? {} : { url }) };
}

/** Null means that the provider holds the file, so no URL exists. */
function addressOf(data: unknown, mediaType: string): string | null {
  if (typeof data === "string")
    return /^(?:https?|data):/.test(data.slice(0, 6)) ? data : `data:${mediaType};base64,${data}`;
  if (!isFields(data)) return null;
  if (data["type"] === "url") return asText(data["url"]) || null;
  return data["type"] === "data" && typeof data["data"] === "string"
    ? `data:${mediaType};base64,${data["data"]}`
    : null;
}

function replyBodies(value: Fields): ReturnType<typeof blockBodies> {
  const said: Fields[] = [];
  const results: Fields[] = [];
  let isSigned = false;
  for (const part of partsOf(value["content"])) {
    const { type, text } = part;
    if (type === "text" && text !== "") said.push({ type: "text", text: asText(text) });
    else if (type === "reasoning") {
      const { signature, redactedData } = optionsOf(part, "anthropic");
      if (typeof redactedData === "string") said.push({ type: "redacted_thinking", data: redactedData });
      else if (typeof signature === "string") said.push({ type: "thinking", thinking: asText(text), signature });
      else if (asText(text) !== "") said.push({ type: "thinking", thinking: text });
      isSigned ||= typeof redactedData === "string" || typeof signature === "string";
    } else if (type === "tool-call") said.push(callBlock(part));
    else if (type === "tool-result") results.push(resultBlock(part));
  }
  const given = [
    ...(said.length === 0 ? [] : [{ role: "assistant", content: said }]),
    ...(results.length === 0 ? [] : [{ role: "user", content: results }]),
  ];
  return given.length === 0 ? [] : blockBodies(given, {}, isSigned);
}

function optionsOf({ providerOptions, providerMetadata }: Fields, provider: string): Fields {
  const options = isFields(providerOptions) ? providerOptions : isFields(providerMetadata) ? providerMetadata : {};
  const own = options[provider];
  return isFields(own) ? own : {};
}

function callBlock({ toolCallId: id, toolName: name, input }: Fields): Fields {
  return { type: "tool_use", id: asText(id), name: asText(name), input: inputOf(input) };
}

/** A prompt has the parsed input, a reply has the input as text. */
function inputOf(input: unknown): unknown {
  if (isFields(input)) return input;
  if (typeof input !== "string") return {};
  try {
    const value: unknown = JSON.parse(input);
    return isFields(value) ? value : {};
  } catch {
    // The text broke off, so no tool runs with it.
    return {};
  }
}

function resultBodies(value: Fields): ReturnType<typeof blockBodies> {
  const results = partsOf(value["content"]).filter(({ type }) => type === "tool-result");
  return results.length === 0 ? [] : blockBodies([{ role: "user", content: results.map(resultBlock) }], {}, false);
}

function resultBlock(part: Fields): Fields {
  const { toolCallId, output, result, isError } = part;
  const read = isFields(output) ? readOutput(output) : { content: textOf(result), isError: isError === true };
  const mark = read.isError ? { is_error: true } : {};
  return { type: "tool_result", tool_use_id: asText(toolCallId), content: read.content, ...mark };
}

/** The model reads this text when the user did not allow a call. */
const deniedText = "The user denied this call: the tool has not run.";

function readOutput({ type, value, reason }: Fields): { readonly content: unknown; readonly isError: boolean } {
  switch (type) {
    case "error-text":
    case "error-json":
      return { content: textOf(value), isError: true };
    case "execution-denied":
      return { content: asText(reason) || deniedText, isError: true };
    case "content":
      return { content: partsOf(value).flatMap(outputBlock), isError: false };
    default:
      return { content: textOf(value), isError: false };
  }
}

function outputBlock(part: Fields): readonly Fields[] {
  const { type, text, data, mediaType } = part;
  if (type === "text") return [{ type: "text", text: asText(text) }];
  const address = addressOf(data, asText(mediaType));
  if (address === null || !asText(mediaType).startsWith("image/")) return [];
  return [{ type: "image", source: fileSource(address) }];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
