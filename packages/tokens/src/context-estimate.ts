import { calibratedFactor, type CalibratedFactor, type Calibration } from "./calibration.ts";
import type { Countable } from "./message-parts.ts";
import type { Actual } from "./occupancy.ts";
import type { TokenCount, TokenCounter } from "./token-counter.ts";

/**
 * Names the origin of a size: the provider's own count, or that count plus an estimate of later messages. Without a
 * provider's count the estimate uses a vocabulary (`tokenizer`) or rules (`heuristic`).
 */
export type EstimateSource = "actual" | "actual+delta" | "tokenizer" | "heuristic";

/**
 * Holds the estimated size of a prompt. Once a few sizes were observed, nine of ten true sizes lie within the band.
 * This holds for real usage and for the simulator's counts: `lab/token-accuracy.ts` and `lab/gauge-curve.ts` print
 * the share.
 */
export interface ContextEstimate {
  /** Holds the estimate in tokens. */
  readonly tokens: number;
  /** Holds the lower end of the band in tokens. */
  readonly lowTokens: number;
  /** Holds the upper end of the band in tokens. */
  readonly highTokens: number;
  /** States whether a provider measured the size, or how the counter estimated it. */
  readonly source: EstimateSource;
}

/** Holds the parts of a request whose size is estimated. */
export interface EstimatedRequest {
  /** Holds the messages, in any provider's wire format or as neutral messages. */
  readonly messages: readonly Countable[];
  /** Holds the system prompt. @default none */
  readonly system?: string | null;
  /** Holds the tool definitions in any provider's wire format. @default none */
  readonly tools?: readonly unknown[];
}

/** Holds the counter and the measurements that an estimate uses. */
export interface EstimateOptions {
  /** Counts tokens for the model that receives the request. */
  readonly counter: TokenCounter;
  /** Holds the measured ratios of real tokens to counted tokens. */
  readonly calibration: Calibration;
  /**
   * Holds a size that a provider measured for the first messages of the request, with the same system prompt and tools.
   * Null counts everything. See `lastActual`.
   */
  readonly actual: Actual | null;
}

/** Estimates the tokens of the next prompt. It counts only the messages that `actual` does not cover. */
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

export function countPrefix({ system, tools }: EstimatedRequest, counter: TokenCounter): TokenCount {
  const systemTokens = system === undefined || system === null ? 0 : counter.countText(system);
  return addCounts(counter.countTools(tools ?? []), { bareTokens: systemTokens, fixedTokens: 0, messages: 0 });
}

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
