import { isFields, parsedFields, type Fields } from "@throughline/core/internal";
import { shownText } from "../as-text.ts";
import { readItem } from "../codex/codex-items.ts";
import type { UnitPlace } from "../foreign-format.ts";
import { partOf } from "../mapped-messages.ts";
import type { MessageList, ReadElement, ReadFrame } from "../message-list.ts";
import { fieldsWithout, type RecordBody } from "../unit-records.ts";

/** Reads the items of the JavaScript SDK, or those of the Python SDK, which have the API's form. */
export class AgentItems implements MessageList {
  readonly name = "openai-agents";
  sessionId: string | null = null;
  readonly entry = {};
  /** Reasoning, message and calls between two results form one reply. The id is that of the open reply. */
  #replyId: string | null = null;

  frame({ session_id: snake, sessionId: camel }: Fields): ReadFrame {
    const id = [snake, camel].find((one) => typeof one === "string" && one !== "");
    if (typeof id === "string") this.sessionId ??= id;
    return { bodies: [] };
  }

  element(value: Fields, place: UnitPlace): ReadElement {
    const { message_data: text, created_at: time } = value;
    // The SDK skips a broken row, so the row gives no message here either.
    const item = typeof text === "string" ? parsedFields(text) : value;
    if (item === null) return { bodies: [], isUnreadable: true, time };
    const given = asResponseItem(item);
    const { kind, body } = readItem(given, { provider: "openai", model: modelOf(item) });
    if (kind !== "reply") this.#replyId = null;
    if (body === null) {
      const isMessage = typeof given["role"] === "string" || given["type"] === "message";
      return { bodies: [], isUnreadable: isMessage, time };
    }
    const placed = kind === "reply" ? this.#inReply(body, place) : body;
    const native = nativeOf(item);
    const more = Object.keys(native).length === 0 ? {} : { native: { ...(body["native"] as Fields), ...native } };
    return { bodies: [{ ...placed, ...more }], isUnreadable: false, time, id: item["id"] };
  }

  #inReply(body: RecordBody, { line }: UnitPlace): RecordBody {
    const isFurtherPart = this.#replyId !== null;
    this.#replyId ??= `reply-${line}`;
    return partOf(body, this.#replyId, isFurtherPart);
  }
}

/** A record holds these fields of an item in another form, so `native` leaves them out. */
const knownFields: ReadonlySet<string> = new Set([
  "type",
  "id",
  "role",
  "content",
  "callId",
  "call_id",
  "name",
  "arguments",
  "output",
  "summary",
  "status",
]);

function nativeOf(item: Fields): Fields {
  return fieldsWithout(item, knownFields);
}

function modelOf({ providerData }: Fields): string | null {
  const model = isFields(providerData) ? providerData["model"] : null;
  return typeof model === "string" && model !== "" ? model : null;
}

function asResponseItem(item: Fields): Fields {
  const { type, callId, output, providerData, ...rest } = item;
  switch (type) {
    case "function_call":
      return callId === undefined ? item : { ...rest, type, call_id: callId };
    case "function_call_result":
      return { ...rest, type: "function_call_output", call_id: callId, output: outputOf(output) };
    case "reasoning":
      return reasoningOf(item, isFields(providerData) ? providerData : {});
    default:
      return Array.isArray(item["content"]) ? { ...item, content: item["content"].map(partOfInput) } : item;
  }
}

/** The JavaScript SDK has other names than the API for images and files, so they are converted. */
function partOfInput(part: unknown): unknown {
  if (!isFields(part)) return part;
  const { type, image, file, ...rest } = part;
  if (type === "input_image" && typeof image === "string") return { ...rest, type, image_url: image };
  return type === "input_file" && typeof file === "string" ? { ...rest, type, file_data: file } : part;
}

/** The output of a tool may be a text, an object with a text, or a list of parts. */
function outputOf(output: unknown): unknown {
  if (isFields(output) && output["type"] === "text") return shownText(output["text"]);
  if (!Array.isArray(output)) return isFields(output) ? [partOfOutput(output)] : output;
  return (output as readonly unknown[]).map((part) => (isFields(part) ? partOfOutput(part) : part));
}

function partOfOutput(part: Fields): Fields {
  const { type, text, image } = part;
  if (type === "text") return { type: "input_text", text };
  return type === "image" && typeof image === "string" ? { type: "input_image", image_url: image } : part;
}

function reasoningOf(item: Fields, providerData: Fields): Fields {
  const { content, summary, id } = item;
  const encrypted = providerData["encrypted_content"] ?? item["encrypted_content"];
  const words = Array.isArray(summary) ? summary : Array.isArray(content) ? content : [];
  const texts = (words as readonly unknown[]).flatMap((part) =>
    isFields(part) && part["text"] !== undefined ? [{ type: "summary_text", text: shownText(part["text"]) }] : [],
  );
  return {
    type: "reasoning",
    summary: texts,
    ...(id === undefined ? {} : { id }),
    ...(typeof encrypted === "string" ? { encrypted_content: encrypted } : {}),
  };
}
