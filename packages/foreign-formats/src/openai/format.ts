import { isFields, type Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatMatch } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { fieldsAround, firstConversation, matchOfMessages, messageLayout, messageLists } from "../message-samples.ts";
import { OpenAiMessages } from "./openai-messages.ts";
import { openAiWriter } from "./write-openai.ts";

const lists = [...messageLists, ["choices"], ["response", "choices"], ["response", "body", "choices"]];

/**
 * The format covers messages of OpenAI's Chat Completions: a list, a request or an answer, or lines of these as in
 * fine-tuning and batches.
 */
export const openAiFormat: ForeignFormat = {
  name: "openai",
  program: "OpenAI Chat Completions",
  layout: (sample) => messageLayout(sample, lists),
  places: [],
  detect: (sample) => {
    const document = firstConversation(sample, lists);
    if (document === null) return null;
    const { model, anthropic_version: version } = fieldsAround(document);
    if (version !== undefined || (typeof model === "string" && model.startsWith("claude"))) return null;
    const match = matchOfMessages(document.elements, matchOf);
    const isKnownModel = typeof model === "string" && /^(?:gpt|chatgpt|ft:|o\d)/.test(model);
    return match !== null && isKnownModel ? "certain" : match;
  },
  // A list of plain texts may be followed by blocks of Anthropic's.
  mayTurnOut: (sample) => firstConversation(sample, lists)?.isCut === true,
  canRead: (sample) => {
    const document = firstConversation(sample, lists);
    return document !== null && matchOfMessages(document.elements, matchOf) !== null;
  },
  createReader: (options) => createListReader(new OpenAiMessages(), options),
  writer: openAiWriter,
};

const roles: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant", "tool", "function"]);
/** No other message format has these roles and parts, so one of them identifies the format. */
const ownRoles: ReadonlySet<unknown> = new Set(["developer", "function"]);
const ownParts: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "refusal", "file"]);

function matchOf(element: Fields): FormatMatch | null {
  const { role, content, message, parts, type, tool_calls: calls, tool_call_id: callId } = element;
  if (isFields(message) && role === undefined) return roles.has(message["role"]) ? "certain" : null;
  if (!roles.has(role) || parts !== undefined || type !== undefined || element["toolInvocations"] !== undefined)
    return null;
  const isOwn = ownRoles.has(role) || Array.isArray(calls) || typeof callId === "string" || "refusal" in element;
  if (!Array.isArray(content)) {
    const isText = typeof content === "string" || content === null;
    return isText || (content === undefined && isOwn) ? (isOwn ? "certain" : "likely") : null;
  }
  const types = (content as readonly unknown[]).map((part) => (isFields(part) ? part["type"] : null));
  if (types.some((one) => one !== "text" && !ownParts.has(one))) return null;
  return isOwn || types.some((one) => ownParts.has(one)) ? "certain" : "likely";
}
