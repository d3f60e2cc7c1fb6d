import type { StoredRecord } from "@throughline/core";
import { type Context, walkBranch } from "@throughline/history";
import { contextSteps, type NeutralMessage, readSummaryText, walkSteps } from "@throughline/history/internal";
import { cutCandidates } from "./choose-cut.ts";
import type { EffectiveSettings } from "./compaction-settings.ts";
import { cutPlaces } from "./cut-places.ts";
import { readCompactionDetails, type CompactionDetails } from "./compaction-details.ts";
import { isFlushMessage, isOutdatedSummary, proseOf, runSteps, type Steps } from "@throughline/core/internal";

export interface CompactionInput {
  /** The window or the whole log, in order of seq. */
  readonly records: readonly StoredRecord[];
  /** @default the last main record */
  readonly headId?: string | null;
  /** Tokens of the whole next request, system prompt and tools included. Null: those of the messages. */
  readonly totalTokens: number | null;
  readonly countMessage: (message: NeutralMessage) => number;
  /** The context of these records with its sizes, where somebody has made it. @default made here */
  readonly counted?: CountedContext;
  readonly settings: EffectiveSettings;
  /** An emergency keeps more, because no model wrote the summary. @default "normal" */
  readonly mode?: "normal" | "emergency";
  /** Keeps at least everything after this record: a summary that exists covers up to it. @default none */
  readonly coversToId?: string;
  /** The request must fit into this number of tokens afterwards. @default the trigger */
  readonly targetTokens?: number | null;
  /** Whether a session of four messages or fewer is refused. @default true */
  readonly refuseShort?: boolean;
  /** Keeps the last exchange and no more: a short session whose owner asked for it. @default false */
  readonly keepLeast?: boolean;
}

/** A context, and the tokens of each of its messages. */
export interface CountedContext {
  readonly context: Context;
  readonly tokens: readonly number[];
}

/** The summary before this one, which the next builds on. */
interface PreviousSummary {
  /** Of the compaction. */
  readonly id: string;
  /** The sequence number of the compaction's record. */
  readonly seq: number;
  /** Without the list of details, which is built again. */
  readonly prose: string;
  /** The size of the summary in the context, in tokens. */
  readonly tokens: number;
  /** The details of its record; null when they cannot be read. */
  readonly details: CompactionDetails | null;
  /** It may repeat what was redacted: whatever is built on it is to be made again, and its details do not go on. */
  readonly isOutdated: boolean;
}

/** What is to be replaced by a summary, and from where on the conversation stays. Plain data; nothing is written. */
export interface CompactionPlan {
  readonly kind: "compact";
  /** Whether a model is to write the summary; an emergency keeps more messages. */
  readonly mode: "normal" | "emergency";
  /** The head and the last record that were planned on. */
  readonly headId: string;
  /** The last record that was planned on. */
  readonly lastSeq: number;
  /** The id of the first message that stays. */
  readonly firstKeptId: string;
  /** The lowest seq that a context still needs. */
  readonly windowFromSeq: number;
  /** What the summary is made of, the previous summary and messages of a flush left out. */
  readonly removed: readonly NeutralMessage[];
  /** The lowest sequence number of the removed messages. */
  readonly removedFromSeq: number;
  /** The highest sequence number of the removed messages. */
  readonly removedToSeq: number;
  /** How many messages are replaced, those of a memory flush included. */
  readonly removedMessages: number;
  /** How many messages stay. */
  readonly keptMessages: number;
  /** The user's newest request when the cut lies behind it. */
  readonly splitRequest: NeutralMessage | null;
  /** The summary that the new one builds on; null for the first compaction. */
  readonly previous: PreviousSummary | null;
  /** The size of the next request in tokens, without the compaction. */
  readonly tokensBefore: number;
  /** Of the removed messages and the previous summary; the new one must have fewer. */
  readonly replacedTokens: number;
  /** Of the whole next request without any summary. */
  readonly keptTokens: number;
  /** The settings that decided, fitted to the window. */
  readonly settings: EffectiveSettings;
}

/** Why a session is not compacted. */
export type NothingReason =
  /** No messages, or a handful: a summary would be no shorter. */
  | "too-few-messages"
  /** No message at which the conversation could be cut. */
  | "no-place"
  /** What could be removed is no longer than its summary would be, or what stays does not fit. */
  | "no-gain"
  /** The covered record is not on the branch, or there is no place behind which the conversation could be cut. */
  | "not-covered"
  /** A checkpoint was to be the summary, and none can be. */
  | "no-checkpoint";

/** No compaction is made, and nothing is wrong. */
export interface NothingToCompact {
  readonly kind: "nothing";
  /** Why none is made. */
  readonly reason: NothingReason;
  /** Of the context, a summary at its beginning apart, */
  readonly messages: number;
  /** and what they have. */
  readonly tokens: number;
}

/** Up to this number of messages, a summary is not worth its cost. */
const shortConversation = 4;
/** A question and its answer. */
const lastExchange = 2;
/** A summary and its heading have at least this number. */
const leastGainTokens = 40;

/**
 * Decides what a compaction replaces. Pure: the same records and sizes give the same plan. Whatever is removed stays
 * in the log, and every removed message is in the text a summarizer gets or is a message of a flush.
 */
export function planCompaction(input: CompactionInput): CompactionPlan | NothingToCompact {
  return runSteps(planSteps(input));
}

/** What `planCompaction` gives, a message a step. */
export function* planSteps(input: CompactionInput): Steps<CompactionPlan | NothingToCompact> {
  const { context, tokens } = input.counted ?? (yield* countedContext(input));
  const { messages, headId } = context;
  const first = messages[0]?.role === "compactionSummary" ? 1 : 0;
  const messageTokens = sum(tokens);
  const nothing = (reason: NothingReason): NothingToCompact => {
    return { kind: "nothing", reason, messages: messages.length - first, tokens: messageTokens };
  };
  if (headId === null || messages.length - first < (input.refuseShort === false ? 2 : shortConversation + 1)) {
    return nothing("too-few-messages");
  }
  const tokensBefore = sizeOfRequest(input.totalTokens, messageTokens);
  const prefixTokens = Math.max(0, tokensBefore - messageTokens);
  const share = messageTokens === 0 ? 1 : Math.min(1, tokensBefore / messageTokens);
  const cut = yield* findCut(input, messages, tokens, first, { prefixTokens, share });
  if (typeof cut === "string") return nothing(cut);
  const firstKept = messages[cut] as NeutralMessage;
  const keptMessageTokens = sum(tokens.slice(cut));
  const flushIds = yield* flushIdsOf(input.records);
  const removed = messages.slice(first, cut);
  return {
    kind: "compact",
    mode: input.mode ?? "normal",
    headId,
    lastSeq: input.records.at(-1)?.seq ?? 0,
    firstKeptId: firstKept.recordId,
    windowFromSeq: yield* windowFrom(input.records, headId, firstKept),
    removed: yield* conversationMessages(removed, flushIds),
    removedFromSeq: removed.reduce((least, { seq }) => Math.min(least, seq), Infinity),
    removedToSeq: removed.reduce((most, { seq }) => Math.max(most, seq), 0),
    removedMessages: removed.length,
    keptMessages: messages.length - cut,
    splitRequest: splitRequest(messages, cut, flushIds),
    previous: first === 1 ? previousSummary(input.records, messages[0] as NeutralMessage, tokens[0] ?? 0) : null,
    tokensBefore,
    replacedTokens: Math.round((messageTokens - keptMessageTokens) * share),
    keptTokens: prefixTokens + Math.round(keptMessageTokens * share),
    settings: input.settings,
  };
}

function* countedContext({ records, headId, countMessage }: CompactionInput): Steps<CountedContext> {
  const context = yield* contextSteps(records, headId === undefined ? {} : { headId });
  const tokens: number[] = [];
  for (const message of context.messages) {
    tokens.push(countMessage(message));
    yield;
  }
  return { context, tokens };
}

/** The messages that a memory flush put into the log. */
export function* flushIdsOf(records: readonly StoredRecord[]): Steps<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const { id, record } of records) {
    if (isFlushMessage(record)) ids.add(id);
    yield;
  }
  return ids;
}

/** A total this many times smaller than the count of its messages was not measured of them. */
const mostShortening = 4;

/** The measured size counts: messages that were shortened for the provider are counted whole here. */
function sizeOfRequest(totalTokens: number | null, messageTokens: number): number {
  return totalTokens === null || totalTokens * mostShortening < messageTokens ? messageTokens : totalTokens;
}

/**
 * The messages as a summarizer is to read them. What a flush asked, and the answer that there was nothing to store, are no
 * part of the conversation. A user message that begins as other programs' summaries do is a summary: the user said
 * nothing of it.
 */
export function* conversationMessages(
  messages: readonly NeutralMessage[],
  flushIds: ReadonlySet<string>,
): Steps<readonly NeutralMessage[]> {
  const read: NeutralMessage[] = [];
  for (const [index, message] of messages.entries()) {
    yield;
    if (!isOfFlush(message, messages[index - 1], flushIds)) read.push(asRead(message));
  }
  return read;
}

function asRead(message: NeutralMessage): NeutralMessage {
  const [block] = message.content;
  const isOneText = message.role === "user" && message.content.length === 1 && block?.type === "text";
  const summary = isOneText ? readSummaryText(block.text) : null;
  if (summary === null) return message;
  const { recordId, seq, tsMs, isPrefixChanged } = message;
  const content = [{ type: "text" as const, text: summary }];
  return { role: "compactionSummary", recordId, seq, tsMs, isPrefixChanged, content, tokensBefore: 0, signed: null };
}

function isOfFlush(
  message: NeutralMessage,
  before: NeutralMessage | undefined,
  flushIds: ReadonlySet<string>,
): boolean {
  if (flushIds.has(message.recordId)) return true;
  const isAnswer = message.role === "assistant" && flushIds.has(before?.recordId ?? "");
  return (
    isAnswer &&
    /^\s*NO_REPLY\s*$/.test(message.content.map((block) => (block.type === "text" ? block.text : "")).join(""))
  );
}

function* findCut(
  input: CompactionInput,
  messages: readonly NeutralMessage[],
  tokens: readonly number[],
  first: number,
  { prefixTokens, share }: { readonly prefixTokens: number; readonly share: number },
): Steps<number | NothingReason> {
  const { settings } = input;
  const places = yield* cutPlaces(messages);
  const target = input.targetTokens ?? settings.triggerTokens ?? Infinity;
  // The division by `share` converts tokens of the request to the scale in which `tokens` counts the messages.
  const room = (target - prefixTokens - settings.maxSummaryTokens - settings.maxDetailTokens) / share;
  const percent = input.mode === "emergency" ? settings.emergencyKeepPercent : settings.keepPercent;
  const latest = input.coversToId === undefined ? messages.length - 1 : coveredUntil(input, messages, first);
  if (latest === null) return "not-covered";
  const candidates = cutCandidates({
    tokens,
    places,
    first,
    latest,
    keepMessages:
      input.keepLeast === true
        ? lastExchange
        : Math.max(settings.minMessages, Math.ceil(((messages.length - first) * percent) / 100)),
    keepTokens: input.keepLeast === true ? 0 : settings.keepTokens,
    mostKeptTokens: Math.max(0, Math.min(settings.mostKeptTokens, room)),
  });
  if (candidates.length === 0) return input.coversToId === undefined ? "no-place" : "not-covered";
  const removedTokens = (cut: number): number => sum(tokens.slice(first, cut));
  const gains = candidates.filter((cut) => removedTokens(cut) >= leastGainTokens);
  const fits = gains.find((cut) => sum(tokens.slice(cut)) <= room);
  if (fits !== undefined) return fits;
  // Nothing fits, so the least: what then is too large is a single message or turn, which is shortened elsewhere.
  const least = gains.toSorted((one, other) => other - one)[0];
  return least === undefined || input.coversToId !== undefined ? "no-gain" : least;
}

/**
 * The first message that a summary does not cover; behind a summary of everything the last exchange. A cut before it is
 * as good: some messages are then both summarized and kept. Null when the covered record is not on the branch.
 */
function coveredUntil(input: CompactionInput, messages: readonly NeutralMessage[], first: number): number | null {
  const path = walkBranch(input.records, input.headId === undefined ? lastMain(input.records) : input.headId).path;
  const covered = path.findIndex(({ id }) => id === input.coversToId);
  if (covered < 0) return null;
  const after = new Set(path.slice(covered + 1).map(({ id }) => id));
  const next = messages.findIndex(({ recordId }, index) => index >= first && after.has(recordId));
  return next === -1 ? messages.length - lastExchange : next;
}

function lastMain(records: readonly StoredRecord[]): string | null {
  return records.findLast(({ side }) => !side)?.id ?? null;
}

/** A branch need not be in the order of seq: what lies lowest of all that stays decides. */
function* windowFrom(records: readonly StoredRecord[], headId: string, firstKept: NeutralMessage): Steps<number> {
  const { indexes } = yield* walkSteps(records, headId);
  const path = indexes.map((index) => records[index] as StoredRecord);
  const from = path.findIndex(({ id }) => id === firstKept.recordId);
  return path.slice(Math.max(from, 0)).reduce((least, { seq }) => Math.min(least, seq), firstKept.seq);
}

function splitRequest(
  messages: readonly NeutralMessage[],
  cut: number,
  flushIds: ReadonlySet<string>,
): NeutralMessage | null {
  if (messages[cut]?.role === "user" && !flushIds.has(messages[cut].recordId)) return null;
  const isRequest = ({ role, recordId }: NeutralMessage): boolean => role === "user" && !flushIds.has(recordId);
  return messages.slice(0, cut).findLast(isRequest) ?? null;
}

function previousSummary(records: readonly StoredRecord[], message: NeutralMessage, tokens: number): PreviousSummary {
  const text = message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  const { recordId: id, seq } = message;
  const details = readCompactionDetails(records.find((record) => record.id === id)?.record["details"]);
  return { id, seq, prose: proseOf(text), tokens, details, isOutdated: isOutdatedSummary(records, id) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
