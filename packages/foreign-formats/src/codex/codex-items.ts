import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText, withShownText } from "../as-text.ts";
import { recordsFromMessages } from "@throughline/history/openai";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";

export interface ReplyAuthor {
  readonly provider: string;
  readonly model: string | null;
}

/**
 * The kind states an item's role in the conversation. A `reply` is a part of the model's text or calls, and a `result`
 * answers a call. A `prompt` is a person's text, and a `context` is the program's text for the model. `none` means that
 * a model gets no part of it.
 */
export type ItemKind = "reply" | "result" | "prompt" | "context" | "none";

export interface ReadItem {
  readonly kind: ItemKind;
  /** The body has no id and no parent yet. Null means that the item has no known form. */
  readonly body: RecordBody | null;
  /** Only a result names a call; the field is null for other items. */
  readonly callId: string | null;
}

/** A model gets nothing of these items, or gets them beside its messages like tools. They give no message. */
const silentTypes: ReadonlySet<unknown> = new Set([
  "ghost_snapshot",
  "other",
  "additional_tools",
  "configuration_update",
  "compaction_trigger",
]);

export function readItem(item: Fields, { provider, model }: ReplyAuthor): ReadItem {
  if (silentTypes.has(item["type"])) return { kind: "none", body: null, callId: null };
  const { output, isError } = outputOf(item);
  const given = plainItem(withShownTexts(output === undefined ? item : { ...item, output }));
  const drafts = attempt(() => recordsFromMessages([given], model === null ? { provider } : { provider, model }));
  const [draft] = drafts ?? [];
  if (draft === undefined) return { kind: "none", body: null, callId: null };
  const message = plainMessage(draft.message);
  switch (message["role"]) {
    case "assistant":
      return { kind: "reply", body: replyBody(message, given), callId: null };
    case "toolResult": {
      const body = { type: "message", message: { ...message, ...(isError ? { isError } : {}) }, ...nativeType(given) };
      return { kind: "result", body, callId: asText(message["toolCallId"]) };
    }
    case "user":
      return userItem(message);
    default:
      return { kind: "context", body: { type: "message", message }, callId: null };
  }
}

/** The program sends texts with these beginnings in the role of the user, so they do not count as prompts. */
const programTexts: readonly string[] = [
  "<environment_context>",
  "<user_instructions>",
  "# AGENTS.md instructions",
  "<turn_aborted>",
  "<user_shell_command>",
  "<skill>",
  "<subagent_notification>",
  "<permissions instructions>",
  "<collaboration_mode>",
];

function userItem(message: Fields): ReadItem {
  const { content } = message;
  const text = firstText(content).trimStart();
  if (!programTexts.some((beginning) => text.startsWith(beginning)))
    return { kind: "prompt", body: { type: "message", message }, callId: null };
  const body = { type: "custom_message", customType: "codex.context", content, display: false };
  return { kind: "context", body, callId: null };
}

function firstText(content: unknown): string {
  if (typeof content === "string") return content;
  const [first] = Array.isArray(content) ? (content as readonly unknown[]) : [];
  return isFields(first) && typeof first["text"] === "string" ? first["text"] : "";
}

/** Most parts do not state how the reply ended, so only a call and the final answer set a stop reason. */
function replyBody(message: Fields, item: Fields): RecordBody {
  const { stopReason, ...fields } = message;
  const isEnd = stopReason === "toolUse" || item["phase"] === "final_answer";
  return { type: "message", message: { ...fields, ...(isEnd ? { stopReason } : {}) }, ...nativeType(item) };
}

/** A record has no field for these types, so `native` keeps them. */
const keptTypes: ReadonlySet<unknown> = new Set([
  "custom_tool_call",
  "custom_tool_call_output",
  "local_shell_call",
  "local_shell_call_output",
]);

function nativeType({ type, phase }: Fields): { readonly native?: Fields } {
  const kept = { ...(keptTypes.has(type) ? { type } : {}), ...(typeof phase === "string" ? { phase } : {}) };
  return Object.keys(kept).length === 0 ? {} : { native: kept };
}

/**
 * Copies may lack the type of messages, and shell calls have a form of their own. Both are converted to the form of the
 * Responses API.
 */
function plainItem(item: Fields): Fields {
  const { type, role, action, call_id: callId, id } = item;
  if (type === undefined && typeof role === "string") return { ...item, type: "message" };
  if (type === "local_shell_call" && isFields(action)) {
    const call = { type: "function_call", call_id: callId ?? id, name: "local_shell", arguments: action };
    return { ...call, ...(typeof callId === "string" || typeof id === "string" ? {} : { call_id: "" }) };
  }
  if (type === "local_shell_call_output") return { ...item, type: "function_call_output" };
  return item;
}

function withShownTexts(item: Fields): Fields {
  const lists = Object.entries(item).filter(([name, value]) => textLists.has(name) && Array.isArray(value));
  const shown = lists.map(([name, value]) => [name, (value as readonly unknown[]).map(withShownText)] as const);
  return { ...item, ...Object.fromEntries(shown) };
}

const textLists: ReadonlySet<string> = new Set(["content", "summary"]);

/** An output is text or a list of parts. Older versions wrap it in an object that also states success. */
function outputOf({ output }: Fields): { readonly output?: unknown; readonly isError: boolean } {
  if (Array.isArray(output)) return { output: (output as readonly unknown[]).map(inputPart), isError: false };
  if (!isFields(output)) return { isError: false };
  const { content, content_items: items, success } = output;
  const given = Array.isArray(items) ? items : (content ?? JSON.stringify(output));
  return { output: Array.isArray(given) ? given.map(inputPart) : given, isError: success === false };
}

/** Tools may answer with the parts of a reply, but a request must hold them as input parts. */
function inputPart(part: unknown): unknown {
  if (!isFields(part)) return { type: "input_text", text: shownText(part) };
  return part["type"] === "output_text" ? { ...part, type: "input_text" } : part;
}
