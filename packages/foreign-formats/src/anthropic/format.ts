import { isFields, type Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatMatch } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { fieldsAround, firstConversation, matchOfMessages, messageLayout, messageLists } from "../message-samples.ts";
import { AnthropicMessages } from "./anthropic-messages.ts";
import { anthropicWriter } from "./write-anthropic.ts";

const lists = [...messageLists, ["content"], ["result", "message", "content"]];

/** The format covers messages of Anthropic's API: a list, a request or an answer, or lines of these as in batches. */
export const anthropicFormat: ForeignFormat = {
  name: "anthropic",
  program: "Anthropic Messages",
  layout: (sample) => messageLayout(sample, lists),
  places: [],
  detect: (sample) => {
    const document = firstConversation(sample, lists);
    if (document === null) return null;
    const around = fieldsAround(document);
    if (isAnswer(around)) return document.elements.every(({ role }) => role === undefined) ? "certain" : null;
    const match = matchOfMessages(document.elements, matchOf);
    const { model, anthropic_version: version, system, max_tokens: most } = around;
    const isOwn = version !== undefined || (typeof model === "string" && model.startsWith("claude"));
    if (match !== null && (isOwn || (system !== undefined && most !== undefined))) return "certain";
    // A list of plain texts could equally be OpenAI's format. Both formats give the same records, so detection may
    // leave it.
    return match === "certain" ? "certain" : null;
  },
  canRead: (sample) => {
    const document = firstConversation(sample, lists);
    return (
      document !== null && (isAnswer(fieldsAround(document)) || matchOfMessages(document.elements, matchOf) !== null)
    );
  },
  createReader: (options) => createListReader(new AnthropicMessages(), options),
  writer: anthropicWriter,
};

/** A line of a batch's results holds the answer in `result.message`. */
function isAnswer({ type, role, result }: Fields): boolean {
  if (isFields(result) && isFields(result["message"])) return isAnswer(result["message"]);
  return type === "message" && role === "assistant";
}

const plainTypes: ReadonlySet<unknown> = new Set(["text"]);
/** No other message format has these blocks, so one of them identifies the format. */
const ownTypes: ReadonlySet<unknown> = new Set([
  "tool_use",
  "tool_result",
  "thinking",
  "redacted_thinking",
  "document",
  "server_tool_use",
  "web_search_tool_result",
]);

function matchOf({ role, content, parts, type }: Fields): FormatMatch | null {
  if ((role !== "user" && role !== "assistant") || parts !== undefined || type !== undefined) return null;
  if (typeof content === "string") return "likely";
  if (!Array.isArray(content)) return null;
  const blocks = (content as readonly unknown[]).map((block) => (isFields(block) ? block : {}));
  const isOwn = (block: Fields): boolean =>
    ownTypes.has(block["type"]) || (block["type"] === "image" && isFields(block["source"]));
  if (!blocks.every((block) => isOwn(block) || plainTypes.has(block["type"]))) return null;
  return blocks.some(isOwn) ? "certain" : "likely";
}
