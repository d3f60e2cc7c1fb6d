import { isFields, type Fields } from "@throughline/core/internal";
import { blockParts, type MediaPart } from "./block-parts.ts";

export interface MessageParts {
  readonly texts: readonly string[];
  readonly media: readonly MediaPart[];
}

/**
 * Accepts everything whose tokens can be counted: a plain text, a record, a stored record, or a message. The message
 * may have the roles of the record format, be neutral, or use a provider's wire format.
 */
export type Countable = string | object;

/** Providers receive only messages with these roles. Records keep messages of other roles, but no model sees them. */
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
 * Returns the part of a message that the model sees. Returns null for records that add nothing to a context, for
 * commands excluded from the context, and for aborted or failed replies. `details`, usage, ids, times and signatures
 * are never part of the result.
 */
export function messageParts(message: Countable): MessageParts | null {
  if (typeof message === "string") return { texts: [message], media: [] };
  const fields = message as Fields;
  // A stored record wraps the record whose message counts.
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
  // Chat completions store calls beside the content. Ollama stores thinking and images there too.
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
