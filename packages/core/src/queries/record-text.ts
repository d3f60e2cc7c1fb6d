import { isRecordOfType } from "../record.ts";
import { throughlineKind } from "../throughline-record.ts";
import { type Fields, isFields } from "../json-object.ts";
import type { SessionRecord } from "../record.ts";

export function recordRole(record: SessionRecord): string {
  const message = messageOf(record);
  if (message !== null && typeof message["role"] === "string") return message["role"];
  return throughlineKind(record) ?? record.type;
}

/** Returns the role of a message record, or null for any other record. */
export function messageRole(record: SessionRecord): string | null {
  const role = messageOf(record)?.["role"];
  return typeof role === "string" ? role : null;
}

/** Returns the text of a record that a person would read, or the empty text. Accepts records of any shape. */
export function recordText(record: SessionRecord): string {
  const message = messageOf(record);
  if (message !== null) return messageText(message);
  if (isRecordOfType(record, "model_change")) return `${record.provider}/${record.modelId}`;
  const texts = [record["summary"], record["thinkingLevel"], record["name"], record["label"], record["reason"]];
  const checkpoint = record["checkpoint"];
  if (isFields(checkpoint)) texts.push(checkpoint["summary"]);
  const data = record["data"];
  if (throughlineKind(record) !== null && isFields(data)) texts.push(data["reason"]);
  const known = texts.filter((text) => typeof text === "string" && text !== "");
  return known.length > 0 ? known.join("\n") : blocksText(record["content"]);
}

function messageText(message: Fields): string {
  if (message["role"] === "bashExecution") {
    return [`$ ${textOr(message["command"])}`, textOr(message["output"])].filter((text) => text !== "").join("\n");
  }
  const error = textOr(message["errorMessage"]);
  const text = blocksText(message["content"]);
  return error === "" ? text : `${text}${text === "" ? "" : "\n"}[${error}]`;
}

/** Content comes from many programs, so text and blocks of known and unknown types are all accepted. */
export function blocksText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => (isFields(block) ? blockText(block) : ""))
    .filter((text) => text !== "")
    .join("\n");
}

function blockText(block: Fields): string {
  switch (block["type"]) {
    case "text":
      return textOr(block["text"]);
    case "thinking":
      return block["redacted"] === true ? "[thinking, redacted]" : `[thinking] ${textOr(block["thinking"])}`;
    case "toolCall":
      return `→ ${textOr(block["name"])} ${JSON.stringify(block["arguments"] ?? {})}`;
    case "image":
      return `[image ${textOr(block["mimeType"])}]`;
    default:
      return `[${typeof block["type"] === "string" ? block["type"] : "unknown"}]`;
  }
}

/** Returns the message of a message record, or null for any other record. */
export function messageOf(record: SessionRecord): Fields | null {
  const message = record["message"];
  return record.type === "message" && isFields(message) ? message : null;
}

function textOr(value: unknown): string {
  return typeof value === "string" ? value : "";
}
