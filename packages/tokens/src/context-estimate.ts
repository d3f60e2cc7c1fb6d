import { calibratedFactor, type CalibratedFactor, type Calibration } from "./calibration.ts";
import type { Countable } from "./message-parts.ts";
import type { Actual } from "./occupancy.ts";
import type { TokenCount, TokenCounter } from "./token-counter.ts";

/**
 * Where a size comes from: the provider's own count, that count and an estimate of what came after it, an estimate
 * with a vocabulary, or one without.
 */
export type EstimateSource = "actual" | "actual+delta" | "tokenizer" | "heuristic";

/**
 * The size of a prompt. Nine of ten true sizes lie within the band once a few were observed, on real usage and on the
 * simulator's counts: `tools/token-accuracy.ts` and `tools/gauge-curve.ts` print the share.
 */
export interface ContextEstimate {
  /** The estimate itself. */
  readonly tokens: number;
  /** The lower end of the band. */
  readonly lowTokens: number;
  /** The upper end of the band. */
  readonly highTokens: number;
  /** Whether a provider measured the size, or how it was counted. */
  readonly source: EstimateSource;
}

/** What is about to be sent. */
export interface EstimatedRequest {
  /** The messages, in any provider's shape or as neutral messages. */
  readonly messages: readonly Countable[];
  /** The system prompt. @default none */
  readonly system?: string | null;
  /** Definitions in any provider's shape. @default none */
  readonly tools?: readonly unknown[];
}

/** What an estimate of a context is made with. */
export interface EstimateOptions {
  /** Counts for the model that gets the request. */
  readonly counter: TokenCounter;
  /** The ratio of real tokens to counted ones, learned so far. */
  readonly calibration: Calibration;
  /**
   * A size a provider measured for the first messages of the request, with the same system prompt and tools; null to
   * count everything. See `lastActual`.
   */
  readonly actual: Actual | null;
}

/** Estimates the next prompt. Only messages the actual does not cover are counted. */
export function estimateContext(
  request: EstimatedRequest,
  { counter, calibration, actual }: EstimateOptions,
): ContextEstimate {
  const added = counter.countMessages(tail(request.messages, actual?.coversMessages ?? 0));
  if (actual !== null && added.messages === 0) {
    return { tokens: actual.tokens, lowTokens: actual.tokens, highTokens: actual.tokens, source: "actual" };
  }
  const isTokenizer = counter.method !== "heuristic" && counter.method !== "chars4";
  const counted = actual === null ? addCounts(added, countPrefix(request, counter)) : added;
  const { factor, low, high, overhead } = calibratedFactor(calibration, counter);
  const measured = actual?.tokens ?? 0;
  return {
    tokens: measured + Math.round(scaled(counted, factor, overhead.tokens)),
    lowTokens: measured + Math.max(0, Math.floor(scaled(counted, low, overhead.low))),
    highTokens: measured + Math.ceil(scaled(counted, high, overhead.high)),
    source: !isTokenizer ? "heuristic" : actual === null ? "tokenizer" : "actual+delta",
  };
}

/** System prompt and tools. */
export function countPrefix({ system, tools }: EstimatedRequest, counter: TokenCounter): TokenCount {
  const systemTokens = system === undefined || system === null ? 0 : counter.countText(system);
  return addCounts(counter.countTools(tools ?? []), { bareTokens: systemTokens, fixedTokens: 0, messages: 0 });
}

/** Tokens of a count as calibrated, overhead included. */
export function tokensOf(counted: TokenCount, { factor, overhead }: CalibratedFactor): number {
  return Math.round(scaled(counted, factor, overhead.tokens));
}

function scaled({ bareTokens, fixedTokens, messages }: TokenCount, factor: number, overheadTokens: number): number {
  return bareTokens * factor + fixedTokens + messages * overheadTokens;
}

function addCounts(one: TokenCount, other: TokenCount): TokenCount {
  return {
    bareTokens: one.bareTokens + other.bareTokens,
    fixedTokens: one.fixedTokens + other.fixedTokens,
    messages: one.messages + other.messages,
  };
}

function* tail<Item>(items: readonly Item[], from: number): Generator<Item> {
  for (let index = from; index < items.length; index++) yield items[index] as Item;
}
