import type { StoredRecord } from "@throughline/core";
import { isFields, sha256Hex, sourceFormatOf, throughlineKind, type Fields } from "@throughline/core/internal";
import { promptSteps } from "@throughline/tokens/internal";
import { activityOf, ActivitySum } from "./activity-counts.ts";
import { callCounts, type CallCounts } from "./call-counts.ts";
import { quarterOf } from "./time-labels.ts";

/** Identifies a sum: calls of one quarter of an hour, one model and one price belong together. */
export interface UsageGroup {
  /** Counts the quarters of an hour since 1970 in UTC. */
  readonly quarter: number;
  readonly provider: string | null;
  readonly model: string | null;
  /** States the greatest length of a prompt that the calls exceeded at which some price changes; 0 for none. */
  readonly promptStep: number;
  /** Whether the program that wrote the calls stated their cost. */
  readonly isStated: boolean;
}

/** Lists the sums of a group, in this order. */
export const sumNames = [
  "calls",
  "doubtfulCalls",
  "milliseconds",
  "input",
  "cacheRead",
  "cacheWrite",
  "cacheWrite1h",
  "output",
  "reasoning",
  "statedUsd",
] as const;
export type UsageSums = Record<(typeof sumNames)[number], number>;

/** Holds what a call, or a later part of it, adds to the sums. */
export interface CountedCall {
  /** Identifies the call in every session that has a copy of it. */
  readonly key: string;
  /** True for a part of a call that was counted before. */
  readonly isFurtherPart: boolean;
  readonly group: UsageGroup;
  readonly sums: Partial<UsageSums>;
}

/** Holds what a count needs to continue with the next record. It is plain JSON. */
export interface CountState {
  readonly bytes: number;
  /** States when the model was last given something, in milliseconds since 1970. */
  readonly askedMs: number | null;
  /** Holds the id of the Codex session whose events follow, which a fork of it repeats. */
  readonly codexId: string | null;
  /** Holds the newest replies, the one that was written to last at the end: parallel replies may be interleaved. */
  readonly replies: readonly CountedReply[];
  readonly exchangeMs: number | null;
}

interface CountedReply extends Pick<CountedCall, "key" | "group"> {
  readonly isDoubtful: boolean;
  readonly seq: number;
  readonly responseId: string | null;
  readonly startMs: number;
  readonly endMs: number;
}

/** No call takes longer. A longer time means that the request is not in the log. */
const longestCallMs = 60 * 60 * 1000;
/** Shorter ids of replies are numbers that a local server uses again. */
const leastIdLength = 16;

const mostReplies = 16;

export const nothingCounted: CountState = {
  bytes: 0,
  askedMs: null,
  codexId: null,
  replies: [],
  exchangeMs: null,
};

/** Finds the calls in the records of a session, in their order. */
export class CallCounter {
  readonly calls: CountedCall[] = [];
  /** Adds up the messages and the tools of the records that were added. */
  readonly activity: ActivitySum = new ActivitySum();
  /** Counts the records of type `message` among those that were added. */
  messages = 0;
  /** It is changed in place, because a copy for each record would take half of the time. */
  readonly #state: { -readonly [Name in keyof CountState]: CountState[Name] };

  constructor(state: CountState) {
    this.#state = { ...state };
  }

  get state(): CountState {
    return { ...this.#state };
  }

  add(stored: StoredRecord): void {
    const { record, bytes } = stored;
    const isMessage = record.type === "message";
    if (isMessage) this.messages += 1;
    this.#state.bytes += bytes;
    const atMs = stored.tsMs ?? stored.storedAtMs ?? this.#state.askedMs ?? 0;
    const activity = activityOf(stored, atMs);
    if (activity !== null) this.activity.add(activity);
    const kind = throughlineKind(record);
    const { message, data } = record;
    if (kind === "exchange") this.#exchange(data);
    else if (kind === "call") this.#call(stored, data, atMs);
    else if (isMessage && isFields(message) && message["role"] === "assistant") this.#reply(stored, message, atMs);
    else if (record.type === "usage") this.#usage(stored, atMs);
    else if (record.type === "compaction") this.#summary(stored, atMs);
    else if (record["customType"] === "codex.session_meta") this.#codexSession(data);
    else if (!stored.side) this.#state.askedMs = atMs;
  }

  /** A gateway knows when a call began and ended. The record of the call follows. */
  #exchange(data: unknown): void {
    const { startedMs, endedMs } = isFields(data) ? data : {};
    if (typeof startedMs !== "number" || typeof endedMs !== "number") return;
    this.#state.exchangeMs = between(startedMs, endedMs);
  }

  #codexSession(data: unknown): void {
    const id = isFields(data) ? data["id"] : null;
    if (typeof id === "string") this.#state.codexId = id;
  }

  #reply(stored: StoredRecord, message: Fields, atMs: number): void {
    const { responseId, fragment } = message;
    const reply = this.#state.replies.find((one) => one.responseId !== null && one.responseId === responseId);
    if (fragment === true && reply !== undefined) this.#extend(reply, atMs);
    this.#count(stored, message, { usage: message["usage"], atMs, isSum: false });
  }

  /** Each block of a reply has a record, and the last one ends the call. */
  #extend(reply: CountedReply, atMs: number): void {
    this.#addPart(reply, { milliseconds: between(reply.endMs, atMs) });
    this.#keepReply({ ...reply, endMs: atMs });
  }

  #usage(stored: StoredRecord, atMs: number): void {
    const { record } = stored;
    const { usage, kind } = record;
    const reply = this.#state.replies.at(-1);
    // A later block of the reply states more output than the first one.
    if (kind === "claude-code.reply" && reply !== undefined) {
      const output = isFields(usage) ? usage["output"] : null;
      if (typeof output !== "number" || !Number.isSafeInteger(output) || output <= 0) return;
      this.#addPart(reply, { output });
      return;
    }
    this.#count(stored, record, { usage, atMs, isSum: kind === "copilot-cli.run" });
  }

  #summary(stored: StoredRecord, atMs: number): void {
    const { details } = stored.record;
    if (!isFields(details)) return;
    const { usage, provider } = details;
    this.#count(stored, { model: provider }, { usage, atMs, isSum: true });
  }

  /** The record of a call counts what no reply before it has counted, as after a refused answer. */
  #call(stored: StoredRecord, data: unknown, atMs: number): void {
    const { exchangeMs, replies } = this.#state;
    const reply = replies.at(-1);
    this.#state.exchangeMs = null;
    if (!isFields(data) || data["part"] === 2) return;
    const { toSeq, actual } = data;
    if (reply !== undefined && typeof toSeq === "number" && reply.seq > toSeq) {
      if (exchangeMs === null) return;
      this.#addPart(reply, { milliseconds: exchangeMs - between(reply.startMs, reply.endMs) });
      return;
    }
    if (!Array.isArray(actual)) return;
    const [input, output, cacheRead, cacheWrite] = actual as readonly unknown[];
    this.#count(stored, data, { usage: { input, output, cacheRead, cacheWrite }, atMs, isSum: false });
  }

  #count(
    stored: StoredRecord,
    named: Fields,
    { usage, atMs, isSum }: { readonly usage: unknown; readonly atMs: number; readonly isSum: boolean },
  ): void {
    const counts = callCounts(stored.record, usage, { recordBytes: this.#state.bytes, isSum });
    if (counts === null) return;
    const group = groupOf(named, atMs, counts);
    const key = this.#keyOf(stored, named, counts);
    const startMs = isSum ? atMs : (this.#state.askedMs ?? atMs);
    this.calls.push({ key, isFurtherPart: false, group, sums: sumsOf(counts, usage, between(startMs, atMs)) });
    const responseId = textOrNull(named["responseId"]);
    const isDoubtful = counts === "doubtful";
    this.#keepReply({ key, group, isDoubtful, seq: stored.seq, responseId, startMs, endMs: atMs });
  }

  /** A call that is left out has no parts. */
  #addPart({ key, group, isDoubtful }: CountedReply, sums: Partial<UsageSums>): void {
    if (!isDoubtful) this.calls.push({ key, isFurtherPart: true, group, sums });
  }

  #keepReply(reply: CountedReply): void {
    const others = this.#state.replies.filter(({ key }) => key !== reply.key);
    others.push(reply);
    this.#state.askedMs = reply.endMs;
    this.#state.replies = others.length > mostReplies ? others.slice(-mostReplies) : others;
  }

  /**
   * Copies of a call have the same key: in a fork, in the transcript of a program and in the log of the gateway that
   * passed the call on. A fork of a Codex session has other times, but its totals are those of the origin.
   */
  #keyOf({ record, tsMs }: StoredRecord, named: Fields, counts: CallCounts | "doubtful"): string {
    const prompt = counts === "doubtful" ? null : [counts.input, counts.cacheRead, counts.cacheWrite];
    const responseId = textOrNull(named["responseId"]);
    if (responseId !== null && responseId.length >= leastIdLength) return keyOf(["reply", responseId, prompt]);
    const { native } = record;
    const info = isFields(native) ? native["info"] : null;
    if (sourceFormatOf(record) === "codex" && isFields(info))
      return keyOf(["codex", this.#state.codexId, info["total_token_usage"]]);
    return keyOf(["record", record.id, tsMs, prompt]);
  }
}

function keyOf(parts: readonly unknown[]): string {
  return sha256Hex(JSON.stringify(parts)).slice(0, 15);
}

function groupOf(named: Fields, atMs: number, counts: CallCounts | "doubtful"): UsageGroup {
  const isUsable = counts !== "doubtful";
  return {
    quarter: quarterOf(atMs),
    provider: textOrNull(named["provider"]),
    model: textOrNull(named["model"]),
    promptStep: isUsable ? (promptSteps.findLast((step) => counts.promptTokens > step) ?? 0) : 0,
    isStated: isUsable && counts.statedUsd !== null,
  };
}

function sumsOf(counts: CallCounts | "doubtful", usage: unknown, milliseconds: number): Partial<UsageSums> {
  if (counts === "doubtful") return { doubtfulCalls: 1 };
  const { promptTokens: _, statedUsd, ...tokens } = counts;
  // A summary may have taken several calls.
  const stated = isFields(usage) ? usage["calls"] : null;
  const calls = typeof stated === "number" && Number.isSafeInteger(stated) && stated > 0 ? stated : 1;
  return { calls, milliseconds, ...tokens, ...(statedUsd === null ? {} : { statedUsd }) };
}

function between(startMs: number, endMs: number): number {
  const milliseconds = endMs - startMs;
  return milliseconds >= 0 && milliseconds <= longestCallMs ? milliseconds : 0;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
