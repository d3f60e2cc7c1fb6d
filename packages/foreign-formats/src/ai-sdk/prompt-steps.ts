import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { isFields, type Fields } from "@throughline/core/internal";
import { buildContext, walkBranch } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";
import { aiSdkPrompt } from "../live/live-formats.ts";
import type { LiveChange, LivePlace, LiveSession } from "../live/live-format.ts";
import { PromptMessages } from "./prompt-messages.ts";

/** An atom is a piece of a conversation in a form that allows comparing a prompt with a log. */
interface Atom {
  readonly text: string;
  /** A log atom holds a record id here, a prompt atom the index of its message. */
  readonly at: string | number;
  /** The text is set when the whole message is this one text, so that an edit can replace it. Null otherwise. */
  readonly said: string | null;
}

/** Holds the part of a prompt that a log lacks. */
export interface PromptChange extends LiveChange {
  /**
   * States how the prompt relates to the log. It continues the log, branches off at an earlier record, or starts a
   * conversation that shares nothing with it.
   */
  readonly kind: "continues" | "branches" | "starts";
}

/**
 * Returns drafts for the new part of a prompt. A prompt is the whole history at each call, or its end. It is aligned
 * where it agrees best with the end of the log. A prompt that left the log earlier becomes a branch. Texts that the
 * program changed in the shared part become edits. For a long log, only the end is compared when the ends agree.
 * Leading system messages are not part of the conversation.
 */
export function promptDrafts(session: LiveSession, prompt: readonly unknown[], place: LivePlace): PromptChange {
  const first = prompt.findIndex((message) => !isFields(message) || message["role"] !== "system");
  const messages = first < 0 ? [] : prompt.slice(first);
  const behindEnd = behindSameEnd(session, messages);
  if (behindEnd !== null) return { ...additions(messages.slice(behindEnd), place), kind: "continues" };
  const told = messages.flatMap((message, at) => promptAtoms(message, at));
  const known = logAtoms(session);
  const { end, run } = bestRun(known, told);
  if (run === 0) {
    const shared = sharedStart(known, told);
    const isBranch = shared > 0 && shared < known.length;
    const from = messageBehind(told, shared);
    const headId = isBranch ? String(known[shared - 1]?.at) : session.headId;
    const edits = isBranch ? keptEdits(session, known.slice(0, shared), { ...place, headId }) : [];
    const added = additions(messages.slice(from), { ...place, headId: edits.at(-1)?.id ?? headId });
    return { drafts: [...edits, ...added.drafts], headId: added.headId, kind: isBranch ? "branches" : "starts" };
  }
  const edits = textEdits(known, told, { end, run }, place);
  const headId = edits.at(-1)?.id ?? place.headId;
  const added = additions(messages.slice(messageBehind(told, end + 1)), { ...place, headId });
  return { drafts: [...edits, ...added.drafts], headId: added.headId, kind: "continues" };
}

/**
 * The ends are compared first: this many records of the log and this many messages of the prompt. Comparing all of a
 * long log would be slow.
 */
const endRecords = 512;
const endMessages = 256;
/** When this many pieces agree, the pieces before them are assumed to agree too. */
const surelySame = 64;

/**
 * Returns the index of the first message that follows the log, found by comparing the ends only. Null means that the
 * ends do not suffice and everything must be compared.
 */
function behindSameEnd({ records, ...session }: LiveSession, messages: readonly unknown[]): number | null {
  if (records.length <= endRecords) return null;
  const from = Math.max(0, messages.length - endMessages);
  const told = messages.slice(from).flatMap((message, at) => promptAtoms(message, from + at));
  const { end, run } = bestRun(logAtoms({ ...session, records: records.slice(-endRecords) }), told);
  return run < surelySame ? null : messageBehind(told, end + 1);
}

/**
 * An edit on the abandoned branch is repeated on the new branch when both share its target record. Otherwise the new
 * branch would show the unedited text.
 */
function keptEdits(
  { records, headId }: LiveSession,
  shared: readonly Atom[],
  place: LivePlace,
): readonly (RecordDraft & { readonly id: string })[] {
  const ids = new Set<unknown>(shared.map(({ at }) => at));
  const edits = walkBranch(records, headId).path.filter(
    ({ type, record }) => type === "context_edit" && ids.has(record["targetId"]),
  );
  let parentId = place.headId;
  return edits.map(({ record: { targetId, replacement } }) => {
    const frame = { id: place.nextId(), parentId, timestamp: place.timestamp };
    parentId = frame.id;
    return { type: "context_edit", ...frame, targetId, replacement };
  });
}

function additions(messages: readonly unknown[], place: LivePlace): LiveChange {
  const made = aiSdkPrompt(4).drafts(messages.map(plain), place);
  return { drafts: made.flatMap(({ drafts }) => drafts), headId: made.at(-1)?.headId ?? place.headId };
}

/** Returns the index of the first message that has no atom among the first `count` atoms. */
function messageBehind(told: readonly Atom[], count: number): number {
  const last = told[count - 1];
  return last === undefined ? 0 : Number(last.at) + 1;
}

/** Both sides are compared as JSON: bytes become base64, and URLs become text. */
function plain(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, withoutBytes) ?? "null");
}

function withoutBytes(_name: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}

function promptAtoms(given: unknown, at: number): readonly Atom[] {
  const message = plain(given);
  const { bodies } = new PromptMessages().element(isFields(message) ? message : {});
  return bodies.flatMap((body) => recordAtoms((body["message"] ?? {}) as Fields, at));
}

function recordAtoms({ role, content, toolCallId }: Fields, at: string | number): readonly Atom[] {
  if (role === "toolResult") return [{ text: `result ${String(toolCallId)}`, at, said: null }];
  const blocks =
    typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [];
  const made = (blocks as readonly Fields[]).flatMap((block) => blockText(String(role), block));
  const [only] = blocks as readonly Fields[];
  const said = made.length === 1 && typeof only?.["text"] === "string" ? only["text"] : null;
  return made.map((text) => ({ text, at, said }));
}

function blockText(role: string, block: Fields): readonly string[] {
  switch (block["type"]) {
    case "text":
      return block["text"] === "" ? [] : [`${role} ${String(block["text"])}`];
    case "toolCall":
      return [`call ${String(block["id"])}`];
    case "thinking":
      return [];
    default:
      return [`${role} ${JSON.stringify(block)}`];
  }
}

function logAtoms({ records, headId }: LiveSession): readonly Atom[] {
  const { messages } = buildContext(records, { headId });
  const stored = new Map<string, SourcedRecord>(records.map((record) => [record.id, record]));
  return messages.flatMap((message) => {
    const record = stored.get(message.recordId)?.record;
    const own = isFields(record?.["message"]) ? record["message"] : {};
    // An edited message has another text than its record, so the context's content is used.
    const content = isTextual(message) ? message.content : own["content"];
    return recordAtoms({ ...own, role: message.role, content }, message.recordId);
  });
}

function isTextual({ content }: NeutralMessage): boolean {
  return content.every(({ type }) => type === "text" || type === "toolCall" || type === "thinking");
}

/** Longer runs are not counted, because a run of this length proves that the conversations are the same. */
const longestRun = 256;

/**
 * Returns the position in the prompt of the log's last atom. Several positions may match; the one with the longest
 * agreement before it counts.
 */
function bestRun(known: readonly Atom[], told: readonly Atom[]): { readonly end: number; readonly run: number } {
  let best = { end: -1, run: 0 };
  for (let end = 0; end < told.length && best.run < longestRun; end++) {
    let run = 0;
    while (run < longestRun && run <= end && run < known.length && isSame(known.at(-1 - run), told[end - run]))
      run += 1;
    if (run > best.run) best = { end, run };
  }
  return best;
}

function isSame(one: Atom | undefined, other: Atom | undefined): boolean {
  return one !== undefined && one.text === other?.text;
}

function sharedStart(known: readonly Atom[], told: readonly Atom[]): number {
  let shared = 0;
  while (shared < known.length && isSame(known[shared], told[shared])) shared += 1;
  return shared;
}

/**
 * Creates edits for texts that differ in the prompt. Both sides must have the same number of atoms before the run that
 * agrees, so that each text has one counterpart.
 */
function textEdits(
  known: readonly Atom[],
  told: readonly Atom[],
  { end, run }: { readonly end: number; readonly run: number },
  place: LivePlace,
): readonly (RecordDraft & { readonly id: string })[] {
  if (known.length !== end + 1 || run === known.length) return [];
  let parentId = place.headId;
  return known.slice(0, known.length - run).flatMap((atom, at) => {
    const other = told[at];
    if (other === undefined || isSame(atom, other) || atom.said === null || other.said === null) return [];
    if (atom.text.split(" ", 1)[0] !== other.text.split(" ", 1)[0]) return [];
    const frame = { id: place.nextId(), parentId, timestamp: place.timestamp };
    parentId = frame.id;
    const replacement = { content: [{ type: "text", text: other.said }] };
    return [{ type: "context_edit", ...frame, targetId: String(atom.at), replacement }];
  });
}

/** Holds facts about a reply beside its content. */
export interface ReplyFacts {
  /** Names the provider: the SDK model's provider name up to the first dot, such as `openai` or `anthropic`. */
  readonly provider: string;
  /** Names the model that the response states, else the requested model. */
  readonly model: string;
  /** States the stop reason in the form of records: `stop`, `toolUse`, … */
  readonly stopReason: string;
  /** States the provider's id of the response; absent when the provider gave none. */
  readonly responseId?: string;
  /**
   * Holds the token counts: `input` without cached tokens, `output`, `cacheRead`, `cacheWrite`, `totalTokens`. Absent
   * when the provider reported none.
   */
  readonly usage?: Fields;
}

/** Returns the drafts of a reply, from the content that a model passes to the AI SDK. An empty reply gives none. */
export function replyDrafts(content: readonly unknown[], facts: ReplyFacts, place: LivePlace): readonly AppendDraft[] {
  const parts = content.filter(isFields).flatMap(promptPart);
  if (parts.length === 0) return [];
  const [made] = aiSdkPrompt(4).drafts([{ role: "assistant", content: parts }], place);
  return (made?.drafts ?? []).map((draft) => withFacts(draft, facts));
}

/** The parts are converted to the form of the next prompt, so that a later comparison matches them. */
function promptPart(part: Fields): readonly Fields[] {
  const { type, text, providerMetadata, input, toolCallId, toolName, result, isError } = part;
  const own = isFields(providerMetadata) ? { providerOptions: providerMetadata } : {};
  if (type === "text") return text === "" ? [] : [{ type, text, ...own }];
  if (type === "reasoning") return [{ type, text, ...own }];
  if (type === "tool-call") {
    const executed = part["providerExecuted"] === true ? { providerExecuted: true } : {};
    return [{ type, toolCallId, toolName, input: parsed(input), ...executed, ...own }];
  }
  if (type === "tool-result" && part["preliminary"] !== true) {
    const output = typeof result === "string" ? { type: "text", value: result } : { type: "json", value: result };
    const failed = { type: output.type === "text" ? "error-text" : "error-json", value: result };
    return [{ type, toolCallId, toolName, output: isError === true ? failed : output, ...own }];
  }
  return type === "file" || type === "reasoning-file" || type === "custom" ? [{ ...part, ...own }] : [];
}

function parsed(input: unknown): unknown {
  if (typeof input !== "string") return input;
  try {
    return JSON.parse(input);
  } catch {
    // The SDK repeats the model's invalid input unchanged in its next prompt, so the log keeps the text.
    return input;
  }
}

function withFacts(draft: AppendDraft, { provider, model, ...facts }: ReplyFacts): AppendDraft {
  const isSourced = "source" in draft && !("type" in draft);
  const record = (isSourced ? draft.record : draft) as RecordDraft;
  const message = record["message"];
  if (!isFields(message) || message["role"] !== "assistant") return draft;
  const author = { provider: message["provider"] ?? provider, model: message["model"] ?? model };
  const whole: RecordDraft = { ...record, message: { ...message, ...author, ...facts } };
  return isSourced ? { source: (draft as { readonly source: string }).source, record: whole } : whole;
}
