import { isFields, type Fields } from "@throughline/core/internal";
import type { Usage } from "@throughline/core";
import { recordsFromMessages } from "@throughline/history/openai";
import { shownText } from "../as-text.ts";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";
import { countOf } from "../token-count.ts";

const roles: ReadonlyMap<unknown, string> = new Map([
  ["HumanMessage", "user"],
  ["AIMessage", "assistant"],
  ["AIMessageChunk", "assistant"],
  ["SystemMessage", "system"],
  ["ToolMessage", "tool"],
  ["human", "user"],
  ["ai", "assistant"],
  ["system", "system"],
  ["tool", "tool"],
]);

/** A message is read as data only. No class that it names is ever constructed, because the file is not trusted. */
export function readMessage(message: unknown): readonly RecordBody[] {
  const { role, fields } = messageIn(message);
  if (role === undefined) return [];
  const given = chatMessage(role, fields);
  const { response_metadata: facts } = fields;
  const model = isFields(facts) ? (facts["model_name"] ?? facts["model"]) : null;
  const author = typeof model === "string" && model !== "" ? { model } : {};
  const drafts = attempt(() => recordsFromMessages([given], author)) ?? [];
  return drafts.map((draft) => bodyOf(plainMessage(draft.message), fields));
}

/** The form is `{lc, type: "constructor", id: [..., class], kwargs}`, or a plain object with a `type` or a role. */
function messageIn(message: unknown): { readonly role: string | undefined; readonly fields: Fields } {
  if (!isFields(message)) return { role: undefined, fields: {} };
  const { type, id, kwargs, data } = message;
  if (type === "constructor" && isFields(kwargs))
    return { role: roles.get(Array.isArray(id) ? id.at(-1) : null), fields: kwargs };
  return { role: roles.get(type ?? message["role"]), fields: isFields(data) ? data : message };
}

function chatMessage(role: string, fields: Fields): Fields {
  const { content, tool_calls: calls, tool_call_id: callId } = fields;
  if (role === "tool") return { role, tool_call_id: callId, content: partsOf(content) };
  if (role !== "assistant") return { role, content: partsOf(content) };
  const listed = Array.isArray(calls) ? (calls as readonly unknown[]).filter(isFields) : [];
  const made = listed.map(({ id, name, args }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args ?? {}) },
  }));
  return { role, content: partsOf(content), ...(made.length === 0 ? {} : { tool_calls: made }) };
}

/** The calls are also listed beside the content, so those in the content are skipped. */
const calledTypes: ReadonlySet<unknown> = new Set(["tool_use", "tool_call", "functionCall"]);

function partsOf(content: unknown): unknown {
  if (!Array.isArray(content)) return shownText(content);
  return (content as readonly unknown[])
    .map((part) => (typeof part === "string" ? { type: "text", text: part } : part))
    .filter((part) => isFields(part) && !calledTypes.has(part["type"]));
}

function bodyOf(message: Fields, { id, name, status, usage_metadata: counts }: Fields): RecordBody {
  const { api: _api, provider: _provider, ...plain } = message;
  const native = { ...(id === undefined ? {} : { id }), ...(name === undefined ? {} : { name }) };
  const usage = plain["role"] === "assistant" ? usageOf(counts) : null;
  const isFailed = plain["role"] === "toolResult" && status === "error";
  return {
    type: "message",
    native,
    message: { ...plain, ...(usage === null ? {} : { usage }), ...(isFailed ? { isError: true } : {}) },
  };
}

/** The input count includes cached tokens, so they are subtracted. */
function usageOf(counts: unknown): Usage | null {
  if (!isFields(counts)) return null;
  const details = isFields(counts["input_token_details"]) ? counts["input_token_details"] : {};
  const [cacheRead, cacheWrite] = [countOf(details["cache_read"]), countOf(details["cache_creation"])];
  const input = Math.max(0, countOf(counts["input_tokens"]) - cacheRead - cacheWrite);
  const output = countOf(counts["output_tokens"]);
  const totalTokens = input + output + cacheRead + cacheWrite;
  return totalTokens === 0 ? null : { input, output, cacheRead, cacheWrite, totalTokens };
}
