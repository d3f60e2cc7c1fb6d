import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import type { Usage } from "@throughline/core";
import { recordsFromMessages } from "@throughline/history/gemini";
import { attempt, callsOf, plainMessage } from "../mapped-messages.ts";
import type { RecordBody } from "../unit-records.ts";

/** A message that a model is sent, read. */
export interface SentPart {
  /** The call that a result answers; null for everything else. */
  readonly callId: string | null;
  readonly body: RecordBody;
}

/** A message that a model wrote. */
export interface ReadReply {
  readonly kind: "reply";
  /** Null where the message has no content of its own. */
  readonly body: RecordBody | null;
  /** The blocks of `body` that call tools, by the call's id. */
  readonly calls: ReadonlyMap<string, Fields>;
  /** In the order of the calls. What a result has beside its text, such as an image, follows it as a message. */
  readonly results: readonly SentPart[];
  readonly usage: Usage | null;
}

/** A message that a model is sent. */
export interface ReadPrompt {
  readonly kind: "prompt";
  readonly bodies: readonly SentPart[];
}

/** A message of which a model sees nothing, or which is in no form that can be read. */
export interface Unsent {
  readonly kind: "unsent";
  readonly isUnreadable: boolean;
}

const unsent: Unsent = { kind: "unsent", isUnreadable: false };
const unreadable: Unsent = { kind: "unsent", isUnreadable: true };

/** Reads a message of a session as the program resumes it. */
export function readMessage(message: Fields): ReadReply | ReadPrompt | Unsent {
  switch (message["type"]) {
    case "user":
      return prompt(message);
    case "gemini":
      return reply(message);
    default:
      return unsent;
  }
}

/** How messages of a person's begin that are commands, or that the program writes again when it resumes. */
const unsentBeginnings: readonly string[] = ["/", "?", "<session_context>", "<hook_context>"];

function prompt({ content }: Fields): ReadPrompt | Unsent {
  const parts = partsOf(content);
  if (isUnsentText(parts)) return unsent;
  const bodies = bodiesOf(parts);
  return bodies === null ? unreadable : { kind: "prompt", bodies };
}

/** Whether the program leaves a user's message with these parts out of what it resumes with. */
export function isUnsentText(parts: readonly Fields[]): boolean {
  const words = parts.map(wordsOf).join("").trim();
  return words === "" || unsentBeginnings.some((beginning) => words.startsWith(beginning));
}

/** What the program takes for the words of a part: of one without text it takes its kind. */
function wordsOf(part: Fields): string {
  const { text } = part;
  if (typeof text === "string") return text;
  return Object.keys(part).length === 0 ? "" : "[part]";
}

function reply(message: Fields): ReadReply | Unsent {
  const { model } = message;
  const calls = toolCallsOf(message);
  const parts = replyParts(message, calls);
  const author = typeof model === "string" && model !== "" ? { model } : {};
  const drafts = parts.length === 0 ? [] : attempt(() => recordsFromMessages([{ role: "model", parts }], author));
  if (drafts === null) return unreadable;
  const [draft] = drafts;
  const body = draft === undefined ? null : replyBody(plainMessage(draft.message));
  const content = body === null ? [] : (body["message"] as Fields)["content"];
  const blocks = new Map<string, Fields>();
  for (const { id } of callsOf(content)) {
    const block = (content as readonly Fields[]).find((one) => one["type"] === "toolCall" && one["id"] === id);
    if (block !== undefined) blocks.set(id, block);
  }
  return { kind: "reply", body, calls: blocks, results: calls.flatMap(resultsOf), usage: usageOf(message["tokens"]) };
}

/** A call says how the reply ended; a reply without one may get calls later. */
function replyBody(message: Fields): RecordBody {
  const { stopReason, ...fields } = message;
  return { type: "message", message: stopReason === "toolUse" ? { ...fields, stopReason } : fields };
}

/**
 * The parts of a reply. Newer versions keep all of them in the content; older ones keep its text there, and thoughts and calls
 * beside it.
 */
function replyParts(message: Fields, calls: readonly Fields[]): readonly Fields[] {
  const content = partsOf(message["content"]);
  const isWhole = content.some(({ functionCall, thought }) => isFields(functionCall) || Boolean(thought));
  if (isWhole) return withCallIds(content, calls);
  const { thoughts } = message;
  const thought = (Array.isArray(thoughts) ? (thoughts as readonly unknown[]) : []).flatMap(thoughtPart);
  const called = calls.map(({ id, name, args }) => ({ functionCall: { id, name, args } }));
  // An empty text beside calls is none.
  return [...thought, ...content.filter(({ text }) => text !== ""), ...called];
}

function thoughtPart(thought: unknown): readonly Fields[] {
  if (!isFields(thought)) return [];
  const { subject, description } = thought;
  const words = typeof description === "string" ? description : "";
  const text = typeof subject === "string" && subject !== "" ? `**${subject}** ${words}` : words;
  return text === "" ? [] : [{ text, thought: true }];
}

/** Calls without an id get that of the call of this name that is noted beside the content. */
function withCallIds(parts: readonly Fields[], calls: readonly Fields[]): readonly Fields[] {
  const stated = new Set(parts.map((part) => callOf(part)?.["id"]).filter((id) => typeof id === "string"));
  const open = calls.filter(({ id }) => !stated.has(id as string));
  return parts.map((part) => {
    const call = callOf(part);
    if (call === null || typeof call["id"] === "string") return part;
    const at = open.findIndex(({ name }) => name === call["name"]);
    if (at < 0) return part;
    const [found] = open.splice(at, 1);
    return { ...part, functionCall: { ...call, id: found?.["id"] } };
  });
}

function callOf({ functionCall }: Fields): Fields | null {
  return isFields(functionCall) ? functionCall : null;
}

function toolCallsOf({ toolCalls }: Fields): readonly Fields[] {
  if (!Array.isArray(toolCalls)) return [];
  return (toolCalls as readonly unknown[])
    .filter(isFields)
    .filter(({ id, name }) => typeof id === "string" && id !== "" && typeof name === "string");
}

const failures: ReadonlySet<unknown> = new Set(["error", "cancelled"]);

function resultsOf(call: Fields): readonly SentPart[] {
  const { id, name, result, status } = call;
  if (result === undefined || result === null || result === "") return [];
  const given = typeof result === "string" ? [{ functionResponse: { response: { output: result } } }] : partsOf(result);
  const parts = given.map((part) => {
    const { functionResponse } = part;
    if (!isFields(functionResponse)) return part;
    // The call's own id and name: a copy beside it may lack them.
    return { ...part, functionResponse: { ...functionResponse, id, name } };
  });
  const bodies = bodiesOf(parts) ?? bodiesOf([{ functionResponse: { id, name, response: { result } } }]) ?? [];
  if (!failures.has(status)) return bodies;
  return bodies.map(({ callId, body }) => {
    if (callId === null) return { callId, body };
    return { callId, body: { ...body, message: { ...(body["message"] as Fields), isError: true } } };
  });
}

/** What a user content means; null where it cannot be read. */
function bodiesOf(parts: readonly Fields[]): readonly SentPart[] | null {
  const drafts = attempt(() => recordsFromMessages([{ role: "user", parts }]));
  return (
    drafts?.map((draft) => {
      const message = plainMessage(draft.message);
      const callId = message["role"] === "toolResult" ? asText(message["toolCallId"]) : null;
      return { callId, body: { type: "message", message } };
    }) ?? null
  );
}

/** Parts as the service has them; the program also keeps a text, or one part alone. */
function partsOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ text: content }];
  const list = Array.isArray(content) ? (content as readonly unknown[]) : [content];
  return list.flatMap((part) => (typeof part === "string" ? [{ text: part }] : isFields(part) ? [part] : []));
}

/** The program counts what was cached into the input, and thoughts and what tools added on their own. */
function usageOf(tokens: unknown): Usage | null {
  if (!isFields(tokens)) return null;
  const count = (name: string): number => {
    const value = tokens[name] ?? 0;
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
  };
  const cacheRead = Math.min(count("cached"), count("input"));
  const input = count("input") - cacheRead + count("tool");
  const reasoning = count("thoughts");
  const output = count("output") + reasoning;
  const totalTokens = input + cacheRead + output;
  if (totalTokens === 0) return null;
  const usage = { input, output, cacheRead, cacheWrite: 0, totalTokens };
  return reasoning > 0 ? { ...usage, reasoning } : usage;
}
