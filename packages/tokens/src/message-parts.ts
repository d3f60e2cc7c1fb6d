import { isFields, type Fields } from "@throughline/core/internal";
import { blockParts, type MediaPart } from "./block-parts.ts";

/** What of a message a model is shown. */
export interface MessageParts {
  readonly texts: readonly string[];
  readonly media: readonly MediaPart[];
}

/**
 * Something whose tokens can be counted. It is a plain text, a record, a stored record, a message with the roles of the
 * record format, a neutral message, or a message in a provider's wire format.
 */
export type Countable = string | object;

/** Roles whose messages are sent. A message of any other role is kept and shown but no model sees it. */
const sentRoles: ReadonlySet<string> = new Set([
  "user",
  "assistant",
  "model",
  "toolResult",
  "tool",
  "function",
  "system",
  "developer",
  "custom",
  "bashExecution",
  "compactionSummary",
  "branchSummary",
  "redacted",
]);

const failedStopReasons: ReadonlySet<unknown> = new Set(["aborted", "error"]);

/**
 * The part of a message that a model sees. Null if it sees nothing: for records that add nothing to a context, commands
 * excluded from it, and replies that were aborted or failed. `details`, usage, ids, times and signatures are never part
 * of it.
 */
export function messageParts(message: Countable): MessageParts | null {
  if (typeof message === "string") return { texts: [message], media: [] };
  const fields = message as Fields;
  // A stored record holds the record it is about.
  if (typeof fields["seq"] === "number" && isFields(fields["record"])) return messageParts(fields["record"]);
  return typeof fields["role"] === "string" ? partsByRole(fields["role"], fields) : partsByType(fields);
}

function partsByType(fields: Fields): MessageParts | null {
  switch (fields["type"]) {
    case "message":
      return isFields(fields["message"]) ? messageParts(fields["message"]) : null;
    case "custom_message":
      return contentParts(fields["content"]);
    case "compaction":
    case "branch_summary":
      return contentParts(fields["summary"]);
    case "function_call":
    case "function_call_output":
    case "reasoning":
      return contentParts([fields]);
    default:
      return null;
  }
}

function partsByRole(role: string, fields: Fields): MessageParts | null {
  if (!sentRoles.has(role) || fields["excludeFromContext"] === true) return null;
  if (role === "assistant" && failedStopReasons.has(fields["stopReason"])) return null;
  if (role === "bashExecution" && !Array.isArray(fields["content"])) {
    return { texts: [fields["command"], fields["output"]].filter((text) => typeof text === "string"), media: [] };
  }
  const content = fields["content"] ?? fields["summary"] ?? fields["parts"];
  const parts = contentParts(content);
  // Chat completions keep the calls beside the content, Ollama the thinking and the images too.
  const calls = Array.isArray(fields["tool_calls"]) ? fields["tool_calls"] : [];
  const beside = contentParts(
    calls.filter(isFields).map((call) => ({ type: "function_call", ...(call["function"] as object) })),
  );
  const images = (Array.isArray(fields["images"]) ? fields["images"] : []).filter((image) => typeof image === "string");
  return {
    texts: [...parts.texts, ...beside.texts, ...(typeof fields["thinking"] === "string" ? [fields["thinking"]] : [])],
    media: [...parts.media, ...images.map((base64) => ({ kind: "image" as const, base64, isLowDetail: false }))],
  };
}

function contentParts(content: unknown): MessageParts {
  const texts: string[] = [];
  const media: MediaPart[] = [];
  if (typeof content === "string") texts.push(content);
  if (Array.isArray(content)) for (const block of content) blockParts(block, texts, media);
  return { texts: texts.filter((text) => text !== ""), media };
}
