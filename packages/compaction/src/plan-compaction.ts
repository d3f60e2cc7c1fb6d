import type { StoredRecord } from "@throughline/core";
import { type Context, walkBranch } from "@throughline/history";
import { contextSteps, type NeutralMessage, readSummaryText, walkSteps } from "@throughline/history/internal";
import { cutCandidates } from "./choose-cut.ts";
import type { EffectiveSettings } from "./compaction-settings.ts";
import { cutPlaces } from "./cut-places.ts";
import { readCompactionDetails, type CompactionDetails } from "./compaction-details.ts";
import { isFlushMessage, isOutdatedSummary, proseOf, runSteps, type Steps } from "@throughline/core/internal";

export interface CompactionInput {
  /** Holds the records of the window or of the whole log, in order of seq. */
  readonly records: readonly StoredRecord[];
  /** Holds the id of the head record. @default the last main record */
  readonly headId?: string | null;
  /** Counts the whole next request in tokens, system prompt and tools included. Null counts the messages alone. */
  readonly totalTokens: number | null;
  readonly countMessage: (message: NeutralMessage) => number;
  /** Holds the context of these records with its sizes, which saves a second count. @default counted here */
  readonly counted?: CountedContext;
  readonly settings: EffectiveSettings;
  /** An emergency keeps more messages, because no model wrote the summary. @default "normal" */
  readonly mode?: "normal" | "emergency";
  /** Keeps at least everything after this record: an existing summary covers the log up to it. @default none */
  readonly coversToId?: string;
  /** Limits the next request after the compaction, in tokens. @default the trigger */
  readonly targetTokens?: number | null;
  /** Refuses a session of four messages or fewer. @default true */
  readonly refuseShort?: boolean;
  /** Keeps only the last exchange, for a short session whose compaction was requested. @default false */
  readonly keepLeast?: boolean;
}

export interface CountedContext {
  readonly context: Context;
  readonly tokens: readonly number[];
}

/** Holds the previous summary, which the next one continues. */
interface PreviousSummary {
  /** Holds the id of the compaction's record. */
  readonly id: string;
  /** Holds the sequence number of the compaction's record. */
  readonly seq: number;
  /** Holds the text without the list of details, which is extracted again. */
  readonly prose: string;
  /** Holds the size of the summary in the context, in tokens. */
  readonly tokens: number;
  /** Holds the details of its record; null when they are unreadable. */
  readonly details: CompactionDetails | null;
  /**
   * Is true when the summary may repeat redacted text. A summary that continues it needs a retry, and its details are
   * dropped.
   */
  readonly isOutdated: boolean;
}

/**
 * Describes which messages a summary replaces, and where the kept part starts. The plan is plain data; nothing is
 * written.
 */
export interface CompactionPlan {
  readonly kind: "compact";
  /** States whether a model is to write the summary; an emergency keeps more messages. */
  readonly mode: "normal" | "emergency";
  /** Holds the id of the head at the time of the plan. */
  readonly headId: string;
  /** Holds the sequence number of the last record at the time of the plan. */
  readonly lastSeq: number;
  /** Holds the id of the first message that stays. */
  readonly firstKeptId: string;
  /** Holds the lowest sequence number that a context still needs. */
  readonly windowFromSeq: number;
  /** Lists the messages to summarize, without the previous summary and without messages of a memory flush. */
  readonly removed: readonly NeutralMessage[];
  /** Holds the lowest sequence number of the removed messages. */
  readonly removedFromSeq: number;
  /** Holds the highest sequence number of the removed messages. */
  readonly removedToSeq: number;
  /** Counts the replaced messages, including messages of a memory flush. */
  readonly removedMessages: number;
  /** Counts the messages that stay. */
  readonly keptMessages: number;
  /** Holds the user's newest request when the cut lies behind it; null otherwise. */
  readonly splitRequest: NeutralMessage | null;
  /** Holds the summary that the new one continues; null for the first compaction. */
  readonly previous: PreviousSummary | null;
  /** Holds the size of the next request in tokens, without the compaction. */
  readonly tokensBefore: number;
  /** Counts the tokens of the removed messages and the previous summary. The new summary must have fewer. */
  readonly replacedTokens: number;
  /** Counts the tokens of the whole next request without any summary. */
  readonly keptTokens: number;
  /** Holds the settings in force, fitted to the window. */
  readonly settings: EffectiveSettings;
}

/** States why a session is not compacted. */
export type NothingReason =
  /** The context has so few messages that a summary would not be shorter. */
  | "too-few-messages"
  /** The conversation cannot be cut at any message. */
  | "no-place"
  /** The removable part is no longer than its summary would be, or the kept part does not fit. */
  | "no-gain"
  /** The covered record is not on the branch, or the conversation cannot be cut behind it. */
  | "not-covered"
  /** The caller requested a checkpoint as the summary, and no checkpoint can be used. */
  | "no-checkpoint";

/** States that no compaction is made. It is a normal outcome, not an error. */
export interface NothingToCompact {
  readonly kind: "nothing";
  /** States why no compaction is made. */
  readonly reason: NothingReason;
  /** Counts the messages of the context, without a summary at its start. */
  readonly messages: number;
  /** Counts the tokens of the request: those that the caller knows, else those of the messages. */
  readonly tokens: number;
}

/** Up to this number of messages, a summary is not worth its cost. */
const shortConversation = 4;
/** The last exchange is a question and its answer, hence two messages. */
const lastExchange = 2;
/** A summary and its heading take at least this number of tokens. */
const leastGainTokens = 40;

/**
 * Decides which messages a compaction replaces. The function is pure: the same records and sizes give the same plan.
 * The log keeps every removed message. A summarizer reads all of them except messages of a memory flush.
 */
export function planCompaction(input: CompactionInput): CompactionPlan | NothingToCompact {
  return runSteps(planSteps(input));
}

/** Plans like `planCompaction`, but yields after each message, so that a caller can pause. */
export function* planSteps(input: CompactionInput): Steps<CompactionPlan | NothingToCompact> {
  const { context, tokens } = input.counted ?? (yield* countedContext(input));
  const { messages, headId } = context;
  const first = messages[0]?.role === "compactionSummary" ? 1 : 0;
  const messageTokens = sum(tokens);
  const tokensBefore = sizeOfRequest(input.totalTokens, messageTokens);
  const nothing = (reason: NothingReason): NothingToCompact => {
    return { kind: "nothing", reason, messages: messages.length - first, tokens: tokensBefore };
  };
  if (headId === null || messages.length - first < (input.refuseShort === false ? 2 : shortConversation + 1)) {
    return nothing("too-few-messages");
  }
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

export function* flushIdsOf(records: readonly StoredRecord[]): Steps<ReadonlySet<string>> {
  const ids = new Set<string>();
  for (const { id, record } of records) {
    if (isFlushMessage(record)) ids.add(id);
    yield;
  }
  return ids;
}

/** A measured total this many times smaller than the count cannot belong to these messages. */
const mostShortening = 4;

/** The measured size has priority: the provider received some messages shortened, while the count takes them whole. */
function sizeOfRequest(totalTokens: number | null, messageTokens: number): number {
  return totalTokens === null || totalTokens * mostShortening < messageTokens ? messageTokens : totalTokens;
}

/**
 * Returns the messages as a summarizer reads them. The prompt of a flush and a NO_REPLY answer are no part of the
 * conversation. A user message that starts like another program's summary becomes a summary: the user did not write it.
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
  // No cut fits, so the shortest kept part wins. Its single oversized message or turn is shortened elsewhere.
  const least = gains.toSorted((one, other) => other - one)[0];
  return least === undefined || input.coversToId !== undefined ? "no-gain" : least;
}

/**
 * Finds the first message that a summary does not cover. Behind a summary of everything, the last exchange stays. An
 * earlier cut is valid too: some messages are then both summarized and kept. Returns null when the covered record is
 * not on the branch.
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

/** A branch need not be in the order of seq, so the lowest seq of all kept records counts. */
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
