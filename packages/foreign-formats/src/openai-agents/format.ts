import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { ForeignFormat, FormatMatch } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { firstConversation, messageLayout } from "../message-samples.ts";
import { agentDatabase } from "./agent-database.ts";
import { AgentItems } from "./agent-items.ts";
import { agentItemWriter } from "./write-agent-items.ts";

const lists = [[], ["items"], ["history"]];

/** The format covers sessions of OpenAI's Agents SDK: lists of items, and the database of its Python version. */
export const openAiAgentsFormat: ForeignFormat = {
  name: "openai-agents",
  program: "OpenAI Agents SDK",
  layout: (sample) => messageLayout(sample, lists),
  places: [],
  database: agentDatabase,
  detect: (sample) => {
    const document = firstConversation(sample, lists);
    if (document === null) return null;
    const matches = document.elements.map(matchOf);
    // Later versions may add elements without a type and a role, so such elements are allowed.
    const isOther = document.elements.some(({ role }, at) => role !== undefined && matches[at] === null);
    return matches[0] !== null && !isOther && matches.includes("certain") ? "certain" : null;
  },
  createReader: (options) => createListReader(new AgentItems(), options),
  writer: agentItemWriter,
};

const itemTypes: ReadonlySet<unknown> = new Set([
  "function_call",
  "function_call_result",
  "function_call_output",
  "reasoning",
]);

/** A message may lack a type. Only an item that is no message, or a message in the API's form, identifies the list. */
function matchOf({ type, role, content, callId, call_id: snakeId, timestamp, payload }: Fields): FormatMatch | null {
  if (timestamp !== undefined || payload !== undefined) return null;
  if (itemTypes.has(type)) return type === "reasoning" || typeof (callId ?? snakeId) === "string" ? "certain" : null;
  if (typeof role !== "string" || (type !== undefined && type !== "message"))
    return type === undefined ? null : "likely";
  if (typeof content === "string") return type === "message" ? "certain" : "likely";
  if (!Array.isArray(content)) return null;
  const isOwn = (content as readonly unknown[]).every(
    (part) => isFields(part) && /^(?:input|output)_|^refusal$/.test(asText(part["type"])),
  );
  return isOwn ? "certain" : null;
}
