import { throughlineDraft, throughlineKind, isFields, type ToolChoice } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord } from "@throughline/core";
import type { GuardChange } from "@throughline/guard/internal";
import type { WindowCut } from "@throughline/history/internal";
import { type CallTime, readCallTime, timeFields } from "./call-times.ts";
import type { ThinkingRange } from "./leave-thinking-out.ts";
import type { RecordedOutput } from "./output-schema.ts";

/** States how one call of the model ended. */
export type CallOutcome = "answered" | "partial" | "overflowed" | "failed" | "aborted";

/**
 * Holds the tokens of a call as its provider reported them: input, output, read from the cache, written to the cache.
 */
export type CallActual = readonly [input: number, output: number, cacheRead: number, cacheWrite: number];

/** Replaces some of the messages that the log and the changes give. */
export interface CallSplice {
  /** Counts the messages at the start that are sent unchanged. */
  readonly keepStart: number;
  /** Counts the messages at the end that are sent unchanged. */
  readonly keepEnd: number;
  /** Holds the messages between both, in the provider's shape. */
  readonly insert: readonly unknown[];
}

/**
 * Records what one call of the model was sent, and how it ended. Together with the records before it, the system prompt
 * and the tools, it determines every byte of the messages.
 */
export interface CallFacts extends CallTime {
  /** Holds the id of the turn that made the call. */
  readonly turnId: string;
  /** Counts the steps of the turn, from 1. */
  readonly step: number;
  /** Counts the attempts of the step, from 0. The guard asks again with a smaller request. */
  readonly attempt: number;
  /** Names the provider, as its `ChatModel` states it. */
  readonly provider: string;
  /** Names the wire shape, which is the name of a history target. */
  readonly api: string;
  /** Holds the provider's id of the model. */
  readonly model: string;
  /** Holds the seq of the oldest record that the request was built from. */
  readonly fromSeq: number;
  /** Holds the seq of the newest record that the request was built from. */
  readonly toSeq: number;
  /** Holds the id of the record at which the branch ended; null for an empty session. */
  readonly headId: string | null;
  /** Holds the id of the compaction whose summary came first; null when the request had no summary. */
  readonly summaryId: string | null;
  /** Counts the messages in the request, in the provider's shape. */
  readonly messageCount: number;
  /** Holds the first 12 hex digits of the SHA-256 of the system prompt; null without one. */
  readonly systemHash: string | null;
  /** Holds the first 12 hex digits of the SHA-256 of the tools' JSON; null without tools. */
  readonly toolsHash: string | null;
  /**
   * Holds the tokens of system prompt and tools by the tokenizer. Null in records of versions that did not count them.
   */
  readonly prefixTokens: number | null;
  /** Holds the estimate of the whole request before it was sent, in tokens: system prompt, tools and messages. */
  readonly estimatedTokens: number;
  /** Limits the tokens that the model may write; null when the request named no limit. */
  readonly maxOutputTokens: number | null;
  /** Holds the context window that the guard used, in tokens; null when none was known. */
  readonly windowTokens: number | null;
  /** States how the call ended. */
  readonly outcome: CallOutcome;
  /** Holds the usage that the provider reported; null when it reported none. */
  readonly actual: CallActual | null;
  /** Lists what was shortened for this call. The changes of earlier calls still apply and are not repeated. */
  readonly changes: readonly GuardChange[];
  /**
   * Gives the range of messages that lost their thinking in this call and in later ones. With a splice the range
   * applies to later calls only.
   */
  readonly thinkingOut: ThinkingRange | null;
  /** Replaces messages that neither records nor changes give; null when nothing is replaced. */
  readonly splice: CallSplice | null;
  /** Is true when no call of the reply runs without a decision in the log (`throughline.approval`); else absent. */
  readonly asksApproval?: true;
  /** States which tools the model was to call; absent when it was free to. */
  readonly toolChoice?: ToolChoice;
  /** States how the request asked for an answer in JSON; absent when it did not. */
  readonly output?: RecordedOutput;
  /** States where a history that is longer than the window was cut; null when all of it was sent. */
  readonly cut: WindowCut | null;
}

type CallName = Pick<CallFacts, "turnId" | "step" | "attempt">;

export function isSameCall(one: CallName, other: CallName): boolean {
  return one.turnId === other.turnId && one.step === other.step && one.attempt === other.attempt;
}

/** Limits the record's line, in bytes. Details beyond the limit go into a second record. */
const maxCallBytes = 600;

export function callDrafts(call: CallFacts): readonly RecordDraft[] {
  const hasMore =
    call.splice !== null || call.thinkingOut !== null || call.changes.length > 0 || call.output !== undefined;
  const whole = throughlineDraft("call", { ...briefly(call), ...moreOf(call) });
  if (!hasMore || JSON.stringify(whole).length + otherFieldsBytes <= maxCallBytes) return [whole];
  const { turnId, step, attempt } = call;
  return [
    throughlineDraft("call", { ...briefly(call), more: 1 }),
    throughlineDraft("call", { turnId, step, attempt, part: 2, ...moreOf(call) }),
  ];
}

/** Reserves room for the id, the parent and the time, which the store adds. */
const otherFieldsBytes = 120;

function moreOf({ changes, thinkingOut, splice, output }: CallFacts): Readonly<Record<string, unknown>> {
  return {
    ...(changes.length === 0 ? {} : { changes }),
    ...(thinkingOut === null ? {} : { thinkingOut }),
    ...(splice === null ? {} : { splice }),
    ...(output === undefined ? {} : { output }),
  };
}

/** The names are short and defaults are left out, because every call adds one such record. */
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
    ...(call.toolChoice === undefined ? {} : { toolChoice: call.toolChoice }),
    ...timeFields(call),
    outcome: call.outcome,
    ...(call.actual === null ? {} : { actual: call.actual }),
  };
}

/** Any program that may append could write a record of a call, so its fields are checked. */
function isSeq(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** A call is stored in one record, or in two when its changes are too long. */
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
      readonly output?: RecordedOutput;
    };

/** Reads a record of a call. Null for every other record, and for a record in another form. */
export function readCallPart(record: SessionRecord): CallPart | null {
  if (throughlineKind(record) !== "call" || !isFields(record["data"])) return null;
  const { data } = record;
  const { turnId, step } = data;
  if (typeof turnId !== "string" || typeof step !== "number") return null;
  const attempt = numberOr(data["attempt"], 0);
  const changes = Array.isArray(data["changes"]) ? (data["changes"] as readonly GuardChange[]) : [];
  // `moreOf` writes this form.
  const splice = isFields(data["splice"]) ? (data["splice"] as unknown as CallSplice) : null;
  // `moreOf` writes this form.
  const thinkingOut = Array.isArray(data["thinkingOut"]) ? (data["thinkingOut"] as unknown as ThinkingRange) : null;
  const output = readOutput(data["output"]);
  const asked = output === null ? {} : { output };
  if (data["part"] === 2) return { part: 2, turnId, step, attempt, changes, thinkingOut, splice, ...asked };
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
    ...readCallTime(data["time"]),
    outcome: outcome as CallOutcome,
    // `briefly` writes this form.
    actual: Array.isArray(data["actual"]) ? (data["actual"] as unknown as CallActual) : null,
    changes,
    thinkingOut,
    splice,
    cut: readCut(data["cut"]),
    ...(data["asksApproval"] === true ? { asksApproval: true } : {}),
    ...readToolChoice(data["toolChoice"]),
    ...asked,
  };
  return { part: 1, call, hasMore: data["more"] === 1 };
}

function readToolChoice(value: unknown): { readonly toolChoice?: ToolChoice } {
  if (value === "none" || value === "required") return { toolChoice: value };
  return isFields(value) && typeof value["tool"] === "string" ? { toolChoice: { tool: value["tool"] } } : {};
}

function readOutput(value: unknown): RecordedOutput | null {
  if (!isFields(value)) return null;
  const { as, name, schema } = value;
  if ((as !== "json" && as !== "tool") || typeof name !== "string" || !isFields(schema)) return null;
  return { as, name, schema };
}

function readCut(value: unknown): WindowCut | null {
  if (!Array.isArray(value)) return null;
  const [fromSeq, metAtSeq, requestSeq] = value as readonly unknown[];
  if (typeof fromSeq !== "number" || typeof metAtSeq !== "number") return null;
  return { fromSeq, metAtSeq, requestSeq: numberOr(requestSeq, null) };
}

/** Compares by the cut, because two calls with the same cut left out the same beginning of the history. */
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
