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

export interface RemedyContext {
  readonly request: GuardedRequest;
  readonly recordIds: RecordIdsOfMessages;
  readonly kind: OverflowKind;
  /** Is null when the estimate before the call, and not a provider, found that the request does not fit. */
  readonly overflow: OverflowClassification | null;
  readonly estimatedTokens: number;
  /** Holds the prompt size that the provider stated for this exact request. Null once the request was made smaller. */
  readonly statedTokens: number | null;
  /** Limits the tokens of the prompt; null when no window is known. */
  readonly targetTokens: number | null;
  readonly windowTokens: number | null;
  /** Holds the window that the shares of tool results refer to. Null when neither a window nor a refusal is known. */
  readonly resultWindowTokens: number | null;
  readonly leastOutputTokens: number;
  /** Estimates the tokens of messages together with system and tools. */
  readonly estimate: (messages: readonly unknown[]) => number;
  /** Null means shares of the window. */
  readonly resultLimits: (ResultLimits & { readonly keep?: "head" | "head-and-tail" }) | null;
}

export interface Remedied {
  readonly request: GuardedRequest;
  readonly changes: readonly GuardChange[];
}

/** Applies a remedy other than compaction; null when the remedy changes nothing. */
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

/** Lowers the output budget to the room that the prompt leaves. Null when the room is too small for a useful answer. */
function lowerOutput({ request, overflow, estimatedTokens, windowTokens, ...context }: RemedyContext): Remedied | null {
  const asked = request.maxOutputTokens ?? overflow?.maxOutputTokens ?? null;
  const window = overflow?.limitTokens ?? windowTokens;
  if (window === null || asked === null) return null;
  const prompt = context.statedTokens ?? estimatedTokens;
  const least = Math.min(context.leastOutputTokens, asked);
  if (prompt + asked <= window || prompt + least > window) return null;
  // A provider's own count needs little margin, and an estimate needs more. The margin never takes the room of a useful
  // answer.
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

/** Shortens results until the target is met. Without a target, a quarter of their characters stays. */
function squeezedLimits({ request, estimatedTokens, targetTokens }: RemedyContext): ResultLimits {
  const total = findResults(request.messages).reduce((sum, { text }) => sum + text.length, 0);
  // Four characters a token is a high ratio on purpose: if results shrink by too little, the next call fails as well.
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

/** Counts the messages at the end that both lists share by reference. The change reports the rest as left out. */
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
