import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { recordsFromMessages } from "@throughline/history/openai";
import { attempt, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";

/** Who wrote the replies. */
export interface ReplyAuthor {
  readonly provider: string;
  readonly model: string | null;
}

/**
 * What an item is for the conversation. `reply`: a part of what the model wrote. `result`: answers a call. `prompt`: what a
 * person said. `context`: what the program said to the model. `none`: nothing that a model sees.
 */
export type ItemKind = "reply" | "result" | "prompt" | "context" | "none";

/** An item of a request, read. */
export interface ReadItem {
  readonly kind: ItemKind;
  /** The record without its place; null where the item is in no form that can be read. */
  readonly body: RecordBody | null;
  /** The call that a result answers; null for everything else. */
  readonly callId: string | null;
}

/** Items that are no message: a model sees nothing of them, or has them beside its messages, as its tools. */
const silentTypes: ReadonlySet<unknown> = new Set([
  "ghost_snapshot",
  "other",
  "additional_tools",
  "configuration_update",
  "compaction_trigger",
]);

/** Reads an item of the Responses API as Codex stores it. */
export function readItem(item: Fields, { provider, model }: ReplyAuthor): ReadItem {
  if (silentTypes.has(item["type"])) return { kind: "none", body: null, callId: null };
  const { output, isError } = outputOf(item);
  const given = plainItem(output === undefined ? item : { ...item, output });
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

/** How texts begin that the program says to the model in a user's place. */
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

/** A reply's part says nothing of how the reply ended, but for a call and for the final answer. */
function replyBody(message: Fields, item: Fields): RecordBody {
  const { stopReason, ...fields } = message;
  const isEnd = stopReason === "toolUse" || item["phase"] === "final_answer";
  return { type: "message", message: { ...fields, ...(isEnd ? { stopReason } : {}) }, ...nativeType(item) };
}

/** Types that a call or a result loses on its way through a record. */
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

/** An item as the Responses API has it: copies leave out the type of messages, and shell calls have a form of their own. */
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

/** An output is text or a list of parts; older versions wrap it together with how it went. */
function outputOf({ output }: Fields): { readonly output?: unknown; readonly isError: boolean } {
  if (Array.isArray(output)) return { output: (output as readonly unknown[]).map(inputPart), isError: false };
  if (!isFields(output)) return { isError: false };
  const { content, content_items: items, success } = output;
  const given = Array.isArray(items) ? items : (content ?? JSON.stringify(output));
  return { output: Array.isArray(given) ? given.map(inputPart) : given, isError: success === false };
}

/** Tools answer with the parts of a reply, too; a request has them as the parts of an input. */
function inputPart(part: unknown): unknown {
  return isFields(part) && part["type"] === "output_text" ? { ...part, type: "input_text" } : part;
}
