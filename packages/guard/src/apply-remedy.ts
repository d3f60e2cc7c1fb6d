import { dropOldest } from "./drop-oldest.ts";
import { bytesOf, type GuardChange, type RecordIdsOfMessages } from "./guard-change.ts";
import type { GuardedRequest } from "./guard-options.ts";
import type { Remedy } from "./guard-steps.ts";
import { leaveOutMedia } from "./leave-out-media.ts";
import { findResults } from "./message-slots.ts";
import type { OverflowClassification, OverflowKind } from "./overflow.ts";
import { usualLimits } from "./result-limits.ts";
import { leastCharacters, shortenText, shortenToHead } from "./shorten-text.ts";
import { truncateResults, type ResultLimits, type Shrunk } from "./truncate-results.ts";

/** What a remedy knows. */
export interface RemedyContext {
  readonly request: GuardedRequest;
  readonly recordIds: RecordIdsOfMessages;
  readonly kind: OverflowKind;
  /** Null when the look before the call said that it does not fit. */
  readonly overflow: OverflowClassification | null;
  readonly estimatedTokens: number;
  /** What the provider said of this very request; null once it was made smaller. */
  readonly statedTokens: number | null;
  /** Tokens the prompt may have; null when no window is known. */
  readonly targetTokens: number | null;
  readonly windowTokens: number | null;
  /** The window that tool results have shares of; null when neither a window nor a refusal is known. */
  readonly resultWindowTokens: number | null;
  readonly leastOutputTokens: number;
  /** Tokens of messages together with system and tools. */
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Null for shares of the window. */
  readonly resultLimits: (ResultLimits & { readonly keep?: "head" | "head-and-tail" }) | null;
}

/** A smaller request. */
export interface Remedied {
  readonly request: GuardedRequest;
  readonly changes: readonly GuardChange[];
}

/** Applies a remedy other than compaction; null when it finds nothing to do. */
export function applyRemedy(remedy: Exclude<Remedy, "compact">, context: RemedyContext): Remedied | null {
  switch (remedy) {
    case "output-budget":
      return lowerOutput(context);
    case "media":
      return shrunkOf(context, leaveOutMedia(context.request.messages, overBytes(context), context.recordIds));
    case "item": {
      const most = context.overflow?.limitCharacters ?? 50_000;
      return shorten(context, { eachCharacters: most, totalCharacters: Number.MAX_SAFE_INTEGER });
    }
    case "truncate":
      return shorten(
        context,
        context.resultLimits ?? usualLimits(context.resultWindowTokens),
        context.resultLimits?.keep === "head",
      );
    case "squeeze":
      return shorten(context, squeezedLimits(context));
    case "drop":
      return replaceHistory(context, dropOldest(context.request.messages, context));
  }
}

/** Asks for as much of an answer as there is room for; null when that is too little to be useful. */
function lowerOutput({ request, overflow, estimatedTokens, windowTokens, ...context }: RemedyContext): Remedied | null {
  const asked = request.maxOutputTokens ?? overflow?.maxOutputTokens ?? null;
  const window = overflow?.limitTokens ?? windowTokens;
  if (window === null || asked === null) return null;
  const prompt = context.statedTokens ?? estimatedTokens;
  const least = Math.min(context.leastOutputTokens, asked);
  if (prompt + asked <= window || prompt + least > window) return null;
  // A provider's own count needs little margin, an estimate more, but no more than leaves a useful answer.
  const margin = Math.max(16, window * 0.005) + (context.statedTokens === null ? estimatedTokens * 0.02 : 0);
  const room = Math.max(least, Math.floor(window - prompt - margin));
  const change: GuardChange = {
    recordId: null,
    index: -1,
    callId: null,
    what: "output-budget",
    reason: context.kind,
    beforeBytes: 0,
    afterBytes: 0,
  };
  return { request: { ...request, maxOutputTokens: room }, changes: [change] };
}

/** As short as it takes to meet the target; without one, a quarter of what there is. */
function squeezedLimits({ request, estimatedTokens, targetTokens }: RemedyContext): ResultLimits {
  const total = findResults(request.messages).reduce((sum, { text }) => sum + text.length, 0);
  // Four characters a token: when results shrink by too little the call fails once more.
  const rest = targetTokens === null ? total / 4 : total - Math.max(0, estimatedTokens - targetTokens) * 4;
  const totalCharacters = Math.max(leastCharacters, Math.floor(rest));
  return { eachCharacters: Number.MAX_SAFE_INTEGER, totalCharacters };
}

function shorten(context: RemedyContext, limits: ResultLimits, isHeadOnly = false): Remedied | null {
  const { request, kind, recordIds } = context;
  const shortenOne = isHeadOnly ? shortenToHead : shortenText;
  return shrunkOf(
    context,
    truncateResults(request.messages, { ...limits, reason: kind, recordIds, shorten: shortenOne }),
  );
}

function shrunkOf({ request }: RemedyContext, { messages, changes }: Shrunk): Remedied | null {
  return changes.length === 0 ? null : { request: { ...request, messages }, changes };
}

/** The request with another list of messages; null when there is none. */
export function replaceHistory(
  { request, kind }: Pick<RemedyContext, "request" | "kind">,
  messages: readonly unknown[] | null,
): Remedied | null {
  if (messages === null) return null;
  const change: GuardChange = {
    recordId: null,
    index: 0,
    callId: null,
    what: "history",
    reason: kind,
    beforeBytes: bytesOf(JSON.stringify(request.messages)),
    afterBytes: bytesOf(JSON.stringify(messages)),
    leftOutMessages: request.messages.length - commonEnd(request.messages, messages),
  };
  return { request: { ...request, messages }, changes: [change] };
}

/** How many messages at the end are the same ones. */
function commonEnd(one: readonly unknown[], other: readonly unknown[]): number {
  let length = 0;
  while (length < Math.min(one.length, other.length) && one.at(-1 - length) === other.at(-1 - length)) length += 1;
  return length;
}

function overBytes({ request, overflow }: RemedyContext): number | null {
  const limit = overflow?.limitBytes ?? null;
  if (limit === null) return null;
  const size =
    bytesOf(JSON.stringify(request.messages)) + bytesOf(JSON.stringify([request.system, request.tools ?? []]));
  return Math.max(1, size - Math.floor(limit * 0.95));
}
