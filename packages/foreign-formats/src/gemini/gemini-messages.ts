import { isFields, type Fields } from "@throughline/core/internal";
import { asText, shownText, withShownText } from "../as-text.ts";
import type { Usage } from "@throughline/core";
import { recordsFromMessages } from "@throughline/history/gemini";
import { attempt, callsOf, plainMessage } from "../mapped-messages.ts";
import { countOf } from "../token-count.ts";
import type { RecordBody } from "../unit-records.ts";

export interface SentPart {
  /** Only a result names a call; the field is null for other messages. */
  readonly callId: string | null;
  readonly body: RecordBody;
}

export interface ReadReply {
  readonly kind: "reply";
  /** The body is null when the message has no content of its own. */
  readonly body: RecordBody | null;
  /** The tool-call blocks of `body` are listed by call id, because a later copy of the message may add calls. */
  readonly calls: ReadonlyMap<string, Fields>;
  /**
   * The results are in the order of the calls. Content beside a result's text, such as an image, follows the result as
   * a message.
   */
  readonly results: readonly SentPart[];
  readonly usage: Usage | null;
}

export interface ReadPrompt {
  readonly kind: "prompt";
  readonly bodies: readonly SentPart[];
}

/** A model gets no part of such a message, or the message has no known form. */
export interface Unsent {
  readonly kind: "unsent";
  readonly isUnreadable: boolean;
}

const unsent: Unsent = { kind: "unsent", isUnreadable: false };
const unreadable: Unsent = { kind: "unsent", isUnreadable: true };

/** The message is read the way the program reads it on resume, so that the context is the same. */
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

/**
 * The program skips a person's message with such a beginning: it is a command, or the program writes it again on
 * resume.
 */
const unsentBeginnings: readonly string[] = ["/", "?", "<session_context>", "<hook_context>"];

function prompt({ content }: Fields): ReadPrompt | Unsent {
  const parts = partsOf(content);
  if (isUnsentText(parts)) return unsent;
  const bodies = bodiesOf(parts);
  return bodies === null ? unreadable : { kind: "prompt", bodies };
}

/** Returns true when the program skips a user's message with these parts on resume. */
export function isUnsentText(parts: readonly Fields[]): boolean {
  const words = parts.map(wordsOf).join("").trim();
  return words === "" || unsentBeginnings.some((beginning) => words.startsWith(beginning));
}

/** A part without text has its kind as words, so that the message does not count as empty. */
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

/** A call states how the reply ended. A reply without a call may get calls later, so its end stays open. */
function replyBody(message: Fields): RecordBody {
  const { stopReason, ...fields } = message;
  return { type: "message", message: stopReason === "toolUse" ? { ...fields, stopReason } : fields };
}

/**
 * Newer versions store all parts of a reply in its content. Older versions store only text there, and thoughts and
 * calls beside it.
 */
function replyParts(message: Fields, calls: readonly Fields[]): readonly Fields[] {
  const content = partsOf(message["content"]);
  const isWhole = content.some(({ functionCall, thought }) => isFields(functionCall) || Boolean(thought));
  if (isWhole) return withCallIds(content, calls);
  const { thoughts } = message;
  const thought = (Array.isArray(thoughts) ? (thoughts as readonly unknown[]) : []).flatMap(thoughtPart);
  const called = calls.map(({ id, name, args }) => ({ functionCall: { id, name, args } }));
  // The program writes an empty text beside calls, which carries nothing.
  return [...thought, ...content.filter(({ text }) => text !== ""), ...called];
}

function thoughtPart(thought: unknown): readonly Fields[] {
  if (!isFields(thought)) return [];
  const { subject, description } = thought;
  const [title, words] = [shownText(subject), shownText(description)];
  const text = title === "" ? words : `**${title}** ${words}`;
  return text === "" ? [] : [{ text, thought: true }];
}

/** The content may lack the ids of calls. The list beside it has them, matched by name. */
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
    // The result may lack the id and the name, so the call's are used.
    return { ...part, functionResponse: { ...functionResponse, id, name } };
  });
  const bodies = bodiesOf(parts) ?? bodiesOf([{ functionResponse: { id, name, response: { result } } }]) ?? [];
  if (!failures.has(status)) return bodies;
  return bodies.map(({ callId, body }) => {
    if (callId === null) return { callId, body };
    return { callId, body: { ...body, message: { ...(body["message"] as Fields), isError: true } } };
  });
}

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

/** The program may store parts, a text, or one part alone. */
function partsOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ text: content }];
  const list = Array.isArray(content) ? (content as readonly unknown[]) : [content];
  return list.flatMap((part) =>
    typeof part === "string" ? [{ text: part }] : isFields(part) ? [withShownText(part)] : [],
  );
}

/**
 * The program's input count includes cached tokens, so they are subtracted. Its counts for thoughts and tools are
 * separate, so they are added.
 */
function usageOf(tokens: unknown): Usage | null {
  if (!isFields(tokens)) return null;
  const count = (name: string): number => countOf(tokens[name]);
  const cacheRead = Math.min(count("cached"), count("input"));
  const input = count("input") - cacheRead + count("tool");
  const reasoning = count("thoughts");
  const output = count("output") + reasoning;
  const totalTokens = input + cacheRead + output;
  if (totalTokens === 0) return null;
  const usage = { input, output, cacheRead, cacheWrite: 0, totalTokens };
  return reasoning > 0 ? { ...usage, reasoning } : usage;
}
