import { providerLimits } from "@throughline/core/internal";
import { Buffer } from "node:buffer";
import { isObject, listOf, textOf, unknownKey } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";

const limits = providerLimits.anthropic;

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/** Lists the fields of the blocks that clients build. The service rejects every other field. */
const fields: Readonly<Record<string, ReadonlySet<string>>> = {
  text: new Set(["type", "text", "cache_control", "citations"]),
  image: new Set(["type", "source", "cache_control", "transformations"]),
  document: new Set(["type", "source", "title", "context", "citations", "cache_control"]),
  tool_use: new Set(["type", "id", "name", "input", "cache_control", "caller", "toolset_name"]),
  tool_result: new Set(["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"]),
  thinking: new Set(["type", "thinking", "signature"]),
  redacted_thinking: new Set(["type", "data"]),
};

/** The service's own tools produce these blocks. The simulator accepts them unchecked. */
const serverBlocks = new Set([
  "search_result",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "tool_reference",
  "container_upload",
  "compaction",
  "browser_state",
]);

function checkText(block: JsonObject, at: string): Violation | null {
  if (typeof block["text"] !== "string") return invalidRequest(`${at}.text.text: Field required`);
  if (block["text"] === "") return invalidRequest("messages: text content blocks must be non-empty");
  if (block["text"].trim() !== "") return null;
  return invalidRequest("messages: text content blocks must contain non-whitespace text");
}

function checkImage(block: JsonObject, at: string): Violation | null {
  const source = block["source"];
  if (!isObject(source)) return invalidRequest(`${at}.image.source: Field required`);
  if (source["type"] === "url")
    return typeof source["url"] === "string" ? null : invalidRequest(`${at}.image.source.url.url: Field required`);
  if (source["type"] === "file")
    return typeof source["file_id"] === "string"
      ? null
      : invalidRequest(`${at}.image.source.file.file_id: Field required`);
  if (source["type"] !== "base64")
    return invalidRequest(
      `${at}.image.source: Input tag '${textOf(source["type"])}' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'`,
    );
  const where = `${at}.image.source.base64`;
  if (!imageTypes.includes(textOf(source["media_type"])))
    return invalidRequest(
      `${where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`,
    );
  const data = source["data"];
  if (typeof data !== "string") return invalidRequest(`${where}.data: Field required`);
  if (data === "" || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return invalidRequest(`${where}.data: Invalid base64 data`);
  const bytes = Buffer.byteLength(data, "base64");
  if (bytes <= limits.maxImageBytes) return null;
  return invalidRequest(`${where}: image exceeds 5 MB maximum: ${bytes} bytes > ${limits.maxImageBytes} bytes`);
}

function checkId(id: unknown, at: string): Violation | null {
  if (id === undefined) return invalidRequest(`${at}: Field required`);
  if (typeof id !== "string") return invalidRequest(`${at}: Input should be a valid string`);
  const { allowed, maxLength } = limits.callId;
  if (id.length > maxLength) return invalidRequest(`${at}: String should have at most ${maxLength} characters`);
  return allowed.test(id) ? null : invalidRequest(`${at}: String should match pattern '^[a-zA-Z0-9_-]+$'`);
}

function checkToolUse(block: JsonObject, at: string): Violation | null {
  const id = checkId(block["id"], `${at}.tool_use.id`);
  if (id) return id;
  if (typeof block["name"] !== "string") return invalidRequest(`${at}.tool_use.name: Field required`);
  if (!limits.calledToolName.test(block["name"]))
    return invalidRequest(`${at}.tool_use.name: String should match pattern '${limits.calledToolName.source}'`);
  if (block["input"] === undefined) return invalidRequest(`${at}.tool_use.input: Field required`);
  return isObject(block["input"]) ? null : invalidRequest(`${at}.tool_use.input: Input should be a valid dictionary`);
}

function checkToolResult(block: JsonObject, at: string): Violation | null {
  const id = checkId(block["tool_use_id"], `${at}.tool_result.tool_use_id`);
  if (id) return id;
  const content = block["content"];
  if (content === undefined || typeof content === "string") return null;
  if (!Array.isArray(content))
    return invalidRequest(`${at}.tool_result.content: Input should be a valid string or list`);
  return firstOf(listOf(content), (part, index) => {
    const type = isObject(part) ? textOf(part["type"]) : "";
    if (
      ["tool_use", "tool_result", "thinking", "redacted_thinking"].includes(type) ||
      !(type in fields || serverBlocks.has(type))
    )
      return invalidRequest(
        `${at}.tool_result.content.${index}: Input tag '${type}' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'`,
      );
    if (block["is_error"] === true && type !== "text")
      return invalidRequest(`${at}.tool_result: all content must be type \`text\` if \`is_error\` is true`);
    return checkBlock(part, `${at}.tool_result.content.${index}`, "user");
  });
}

function checkThinkingShape(block: JsonObject, at: string): Violation | null {
  const type = textOf(block["type"]);
  const wanted = type === "thinking" ? ["signature", "thinking"] : ["data"];
  const missing = wanted.find((field) => typeof block[field] !== "string");
  return missing ? invalidRequest(`${at}.${type}.${missing}: Field required`) : null;
}

/** Only one role may write each of these blocks. */
const writers: Readonly<Record<string, string>> = {
  tool_use: "assistant",
  thinking: "assistant",
  redacted_thinking: "assistant",
  tool_result: "user",
  image: "user",
};

/** Checks one content block. `at` is its path, such as `messages.0.content.1`. */
export function checkBlock(block: unknown, at: string, role: string): Violation | null {
  if (!isObject(block)) return invalidRequest(`${at}: Input should be a valid dictionary`);
  const type = textOf(block["type"]);
  if (type === "") return invalidRequest(`${at}.type: Field required`);
  if (serverBlocks.has(type)) return null;
  const allowed = fields[type];
  if (!allowed) {
    const tags = Object.keys(fields)
      .map((tag) => `'${tag}'`)
      .join(", ");
    return invalidRequest(
      `${at}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags}`,
    );
  }
  const writer = writers[type];
  if (writer !== undefined && role !== writer)
    return invalidRequest(`${at}: \`${type}\` blocks can only be in \`${writer}\` messages`);
  const unknown = unknownKey(block, allowed);
  if (unknown !== undefined) return invalidRequest(`${at}.${type}.${unknown}: Extra inputs are not permitted`);
  if (type === "text") return checkText(block, at);
  if (type === "image") return checkImage(block, at);
  if (type === "tool_use") return checkToolUse(block, at);
  if (type === "tool_result") return checkToolResult(block, at);
  if (type === "document")
    return isObject(block["source"]) ? null : invalidRequest(`${at}.document.source: Field required`);
  return checkThinkingShape(block, at);
}
