import { throughlineDraft, throughlineKind, isFields } from "@throughline/core/internal";
import { type RecordDraft, type SessionRecord } from "@throughline/core";
import type { GuardChange } from "@throughline/guard/internal";
import type { WindowCut } from "@throughline/history/internal";
import type { ThinkingRange } from "./leave-thinking-out.ts";

/** How one call of the model ended. */
export type CallOutcome = "answered" | "partial" | "overflowed" | "failed" | "aborted";

/** Tokens of a call as its provider said: input, output, read from the cache, written to it. */
export type CallActual = readonly [input: number, output: number, cacheRead: number, cacheWrite: number];

/** What is put in place of some of the messages that the log and the changes give. */
export interface CallSplice {
  /** The number of messages at the start and at the end that are sent unchanged. */
  readonly keepStart: number;
  /** The number of messages at the end that are sent unchanged. */
  readonly keepEnd: number;
  /** The messages between both, in the provider's shape. */
  readonly insert: readonly unknown[];
}

/**
 * What one call of the model was given, and what came of it. Together with the records before it, with system prompt
 * and tools, it says every byte of the messages that were sent.
 */
export interface CallFacts {
  /** The turn that made the call. */
  readonly turnId: string;
  /** From 1 in each turn. */
  readonly step: number;
  /** From 0 in each step: the guard asks again with less. */
  readonly attempt: number;
  /** The provider that was asked, by the name that its `ChatModel` states. */
  readonly provider: string;
  /** The wire shape, by the name of a history target. */
  readonly api: string;
  /** The provider's id of the model. */
  readonly model: string;
  /** The oldest and the newest record that was looked at, and where the branch ended. */
  readonly fromSeq: number;
  /** The newest record that was looked at. */
  readonly toSeq: number;
  /** The record at which the branch ended; null for an empty session. */
  readonly headId: string | null;
  /** The compaction whose summary came first. */
  readonly summaryId: string | null;
  /** Messages in the request, in the provider's shape. */
  readonly messageCount: number;
  /** The first 12 hex digits of the SHA-256 of the system prompt and of the tools' JSON; null for none. */
  readonly systemHash: string | null;
  /** The first 12 hex digits of the SHA-256 of the tools' JSON; null without tools. */
  readonly toolsHash: string | null;
  /** System prompt and tools by the tokenizer; null in records of versions that did not count them. */
  readonly prefixTokens: number | null;
  /** The estimate of the whole request before it was sent: system prompt, tools and messages. */
  readonly estimatedTokens: number;
  /** The most tokens that the model may write; null when the request named no limit. */
  readonly maxOutputTokens: number | null;
  /** The context window that the guard used; null when none was known. */
  readonly windowTokens: number | null;
  /** How the call ended. */
  readonly outcome: CallOutcome;
  /** Null when the provider said nothing. */
  readonly actual: CallActual | null;
  /** What was shortened for this call; what was shortened for earlier ones is so here too. */
  readonly changes: readonly GuardChange[];
  /** The messages that lost their thinking by it, in this call and in later ones; with a splice in later ones only. */
  readonly thinkingOut: ThinkingRange | null;
  /** A replacement of messages that neither records nor changes give; null without one. */
  readonly splice: CallSplice | null;
  /** True when no call of the reply runs without a decision in the log (`throughline.approval`); else absent. */
  readonly asksApproval?: true;
  /** Where a history that is longer than the window was cut; null when all of it was sent. */
  readonly cut: WindowCut | null;
}

/** Identifies a call by its turn, its place in the turn, and the number of the attempt. */
type CallName = Pick<CallFacts, "turnId" | "step" | "attempt">;

export function isSameCall(one: CallName, other: CallName): boolean {
  return one.turnId === other.turnId && one.step === other.step && one.attempt === other.attempt;
}

/** Of the record's line: what does not fit goes into a further record. */
const maxCallBytes = 600;

/** The drafts of a call: one, or two when its changes are too long. */
export function callDrafts(call: CallFacts): readonly RecordDraft[] {
  const hasMore = call.splice !== null || call.thinkingOut !== null || call.changes.length > 0;
  const whole = throughlineDraft("call", { ...briefly(call), ...moreOf(call) });
  if (!hasMore || JSON.stringify(whole).length + otherFieldsBytes <= maxCallBytes) return [whole];
  const { turnId, step, attempt } = call;
  return [
    throughlineDraft("call", { ...briefly(call), more: 1 }),
    throughlineDraft("call", { turnId, step, attempt, part: 2, ...moreOf(call) }),
  ];
}

/** Id, parent and time of a record, which the store adds. */
const otherFieldsBytes = 120;

function moreOf({ changes, thinkingOut, splice }: CallFacts): Readonly<Record<string, unknown>> {
  return {
    ...(changes.length === 0 ? {} : { changes }),
    ...(thinkingOut === null ? {} : { thinkingOut }),
    ...(splice === null ? {} : { splice }),
  };
}

/** Short names, and nothing that is as usual: there is one of these for every call. */
function briefly(call: CallFacts): Readonly<Record<string, unknown>> {
  return {
    turnId: call.turnId,
    step: call.step,
    ...(call.attempt === 0 ? {} : { attempt: call.attempt }),
    provider: call.provider,
    ...(call.api === call.provider ? {} : { api: call.api }),
    model: call.model,
    ...(call.fromSeq === 1 ? {} : { fromSeq: call.fromSeq }),
    toSeq: call.toSeq,
    headId: call.headId,
    ...(call.summaryId === null ? {} : { summaryId: call.summaryId }),
    messages: call.messageCount,
    ...(call.systemHash === null ? {} : { system: call.systemHash }),
    ...(call.toolsHash === null ? {} : { tools: call.toolsHash }),
    ...(call.prefixTokens === null ? {} : { prefix: call.prefixTokens }),
    estimate: call.estimatedTokens,
    ...(call.maxOutputTokens === null ? {} : { maxOutput: call.maxOutputTokens }),
    ...(call.windowTokens === null ? {} : { window: call.windowTokens }),
    ...(call.cut === null ? {} : { cut: [call.cut.fromSeq, call.cut.metAtSeq, call.cut.requestSeq] }),
    ...(call.asksApproval === true ? { asksApproval: true } : {}),
    outcome: call.outcome,
    ...(call.actual === null ? {} : { actual: call.actual }),
  };
}

/** Whoever may append may write a record of a call. */
function isSeq(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** A record of a call: the call, or the further part of one. */
export type CallPart =
  | { readonly part: 1; readonly call: CallFacts; readonly hasMore: boolean }
  | {
      readonly part: 2;
      readonly turnId: string;
      readonly step: number;
      readonly attempt: number;
      readonly changes: readonly GuardChange[];
      readonly thinkingOut: ThinkingRange | null;
      readonly splice: CallSplice | null;
    };

/** Reads a record of a call; null for every other record, and for one that is not as we write them. */
export function readCallPart(record: SessionRecord): CallPart | null {
  if (throughlineKind(record) !== "call" || !isFields(record["data"])) return null;
  const { data } = record;
  const { turnId, step } = data;
  if (typeof turnId !== "string" || typeof step !== "number") return null;
  const attempt = numberOr(data["attempt"], 0);
  const changes = Array.isArray(data["changes"]) ? (data["changes"] as readonly GuardChange[]) : [];
  // As `moreOf` writes it.
  const splice = isFields(data["splice"]) ? (data["splice"] as unknown as CallSplice) : null;
  // As `moreOf` writes it.
  const thinkingOut = Array.isArray(data["thinkingOut"]) ? (data["thinkingOut"] as unknown as ThinkingRange) : null;
  if (data["part"] === 2) return { part: 2, turnId, step, attempt, changes, thinkingOut, splice };
  const { provider, model, toSeq, outcome } = data;
  if (typeof provider !== "string" || typeof model !== "string" || !isSeq(toSeq)) return null;
  const call: CallFacts = {
    turnId,
    step,
    attempt,
    provider,
    api: textOr(data["api"], provider),
    model,
    fromSeq: isSeq(data["fromSeq"]) ? data["fromSeq"] : 1,
    toSeq,
    headId: textOr(data["headId"], null),
    summaryId: textOr(data["summaryId"], null),
    messageCount: numberOr(data["messages"], 0),
    systemHash: textOr(data["system"], null),
    toolsHash: textOr(data["tools"], null),
    prefixTokens: numberOr(data["prefix"], null),
    estimatedTokens: numberOr(data["estimate"], 0),
    maxOutputTokens: numberOr(data["maxOutput"], null),
    windowTokens: numberOr(data["window"], null),
    outcome: outcome as CallOutcome,
    // As `briefly` writes it.
    actual: Array.isArray(data["actual"]) ? (data["actual"] as unknown as CallActual) : null,
    changes,
    thinkingOut,
    splice,
    cut: readCut(data["cut"]),
    ...(data["asksApproval"] === true ? { asksApproval: true } : {}),
  };
  return { part: 1, call, hasMore: data["more"] === 1 };
}

function readCut(value: unknown): WindowCut | null {
  if (!Array.isArray(value)) return null;
  const [fromSeq, metAtSeq, requestSeq] = value as readonly unknown[];
  if (typeof fromSeq !== "number" || typeof metAtSeq !== "number") return null;
  return { fromSeq, metAtSeq, requestSeq: numberOr(requestSeq, null) };
}

/** Whether two calls left the same beginning of the history out. */
export function isSameCut(one: WindowCut | null, other: WindowCut | null): boolean {
  if (one === null || other === null) return one === other;
  return one.fromSeq === other.fromSeq && one.metAtSeq === other.metAtSeq && one.requestSeq === other.requestSeq;
}

function numberOr<Other>(value: unknown, other: Other): number | Other {
  return typeof value === "number" ? value : other;
}

function textOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === "string" ? value : other;
}
