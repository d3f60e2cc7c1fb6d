import { isFields, type Fields } from "./json-object.ts";

export interface RecordProblem {
  readonly path: string;
  readonly message: string;
}

type Check = (value: unknown, path: string) => RecordProblem | null;

/**
 * Checks the structure of a record before any code builds a context from it: a known type must hold the fields that its
 * meaning needs. Unknown types, roles, blocks and fields pass. The check is written by hand because replay runs it on
 * every record; a property test compares it with a schema.
 */
export function findRecordProblem(record: unknown): RecordProblem | null {
  if (!isFields(record)) return problem("", "is not an object");
  const base =
    text(record["type"], "type") ??
    text(record["id"], "id") ??
    (record["parentId"] === null ? null : text(record["parentId"], "parentId")) ??
    text(record["timestamp"], "timestamp");
  if (base !== null) return base;
  const check = checksByType.get(record["type"] as string);
  return check === undefined ? null : check(record);
}

const checksByType: ReadonlyMap<string, (record: Fields) => RecordProblem | null> = new Map([
  ["message", (record: Fields) => checkMessage(record["message"])],
  [
    "compaction",
    (record: Fields) =>
      text(record["summary"], "summary") ??
      text(record["firstKeptEntryId"], "firstKeptEntryId") ??
      number(record["tokensBefore"], "tokensBefore"),
  ],
  ["branch_summary", (record: Fields) => text(record["fromId"], "fromId") ?? text(record["summary"], "summary")],
  ["custom", (record: Fields) => text(record["customType"], "customType")],
  [
    "custom_message",
    (record: Fields) => text(record["customType"], "customType") ?? content(record["content"], "content"),
  ],
  ["model_change", (record: Fields) => text(record["provider"], "provider") ?? text(record["modelId"], "modelId")],
  ["thinking_level_change", (record: Fields) => text(record["thinkingLevel"], "thinkingLevel")],
  ["label", (record: Fields) => text(record["targetId"], "targetId")],
  ["checkpoint", (record: Fields) => checkCheckpoint(record["checkpoint"])],
]);

function checkMessage(message: unknown): RecordProblem | null {
  if (!isFields(message)) return problem("message", "is not an object");
  const role = message["role"];
  switch (role) {
    case "user":
    case "assistant":
    case "custom":
      return content(message["content"], "message.content");
    case "toolResult":
      return (
        text(message["toolCallId"], "message.toolCallId") ??
        content(message["content"], "message.content") ??
        optionalBoolean(message["isError"], "message.isError")
      );
    case "bashExecution":
      return text(message["command"], "message.command") ?? text(message["output"], "message.output");
    default:
      return text(role, "message.role");
  }
}

function checkCheckpoint(checkpoint: unknown): RecordProblem | null {
  if (!isFields(checkpoint)) return problem("checkpoint", "is not an object");
  return text(checkpoint["summary"], "checkpoint.summary");
}

function content(value: unknown, path: string): RecordProblem | null {
  if (typeof value === "string") return null;
  if (!Array.isArray(value)) return problem(path, "is neither text nor a list of blocks");
  for (let index = 0; index < value.length; index++) {
    // The path is built only for the block with a problem, because building it for thousands of blocks takes noticeable
    // time.
    if (block(value[index], "") !== null) return block(value[index], `${path}.${index}`);
  }
  return null;
}

function block(value: unknown, path: string): RecordProblem | null {
  if (!isFields(value)) return problem(path, "is not an object");
  switch (value["type"]) {
    case "text":
      return text(value["text"], `${path}.text`);
    case "thinking":
      return text(value["thinking"], `${path}.thinking`);
    case "image":
      return image(value, path);
    case "toolCall":
      return (
        text(value["id"], `${path}.id`) ??
        text(value["name"], `${path}.name`) ??
        (isFields(value["arguments"]) ? null : problem(`${path}.arguments`, "is not an object"))
      );
    default:
      return text(value["type"], `${path}.type`);
  }
}

function image(value: Fields, path: string): RecordProblem | null {
  if (isFields(value["source"])) return null;
  return text(value["data"], `${path}.data`) ?? text(value["mimeType"], `${path}.mimeType`);
}

const text: Check = (value, path) => (typeof value === "string" ? null : problem(path, "is not text"));

const number: Check = (value, path) => (typeof value === "number" ? null : problem(path, "is not a number"));

const optionalBoolean: Check = (value, path) =>
  value === undefined || typeof value === "boolean" ? null : problem(path, "is not true or false");

function problem(path: string, message: string): RecordProblem {
  return { path, message };
}
