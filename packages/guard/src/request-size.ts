import { type ContextEstimate, estimateContext } from "@throughline/tokens";
import type { Actual, Calibration, TokenCounter } from "@throughline/tokens/internal";
import type { GuardedRequest, GuardRequest } from "./guard-options.ts";
import type { OverflowKind } from "./overflow.ts";

/**
 * Limits the tokens of system, tools and messages, so that a full answer fits and estimates may be slightly wrong. A
 * tenth of the window stays free, or the output and 2 % when that is more: 180,000 of 200,000 tokens remain. For an
 * unsure estimate up to 15 % more stays free, so that one cut is enough.
 *
 * @param sureShare the estimate divided by its upper bound
 */
export function safePromptTokens(windowTokens: number, maxOutputTokens: number | null, sureShare = 1): number {
  // A budget as large as a small window is lowered later. Here it must not reduce the prompt to nothing.
  const output = Math.min(outputReserve(windowTokens, maxOutputTokens), windowTokens / 4);
  const safe = windowTokens - Math.max(output + windowTokens * 0.02, windowTokens * 0.1);
  return Math.floor(Math.max(safe * 0.85, Math.min(safe, (windowTokens - output) * sureShare)));
}

/** Providers count the whole output budget as a part of the window. Nothing is reserved when no budget is sent. */
export function outputReserve(windowTokens: number, maxOutputTokens: number | null): number {
  return maxOutputTokens === null ? 0 : Math.min(maxOutputTokens, windowTokens);
}

/** Returns null when the request fits or the window is unknown. */
export function excessOf(
  promptTokens: number,
  windowTokens: number | null,
  maxOutputTokens: number | null,
  leastOutputTokens: number,
): OverflowKind | null {
  if (windowTokens === null || promptTokens + outputReserve(windowTokens, maxOutputTokens) <= windowTokens) return null;
  if (maxOutputTokens === null || promptTokens >= windowTokens) return "input";
  return promptTokens + Math.min(leastOutputTokens, maxOutputTokens) <= windowTokens ? "io" : "input";
}

type CountedRequest = Pick<GuardedRequest, "messages" | "system" | "tools">;

/**
 * Estimates requests. The measured prefix of the unchanged request counts exactly, and a provider's figures correct the
 * rest.
 */
export interface SizeGauge {
  /** Is greater than 1 when the provider counted more than the estimate. */
  readonly correction: number;
  estimate(request: CountedRequest): ContextEstimate;
  /**
   * Compares both requests by estimate. When a measured size covers only one of them, both are also compared without
   * it.
   */
  isSmaller(before: CountedRequest, after: CountedRequest): boolean;
  /** Applies the token count that a provider stated for the request. */
  correct(estimate: ContextEstimate, observedTokens: number): void;
  /** A provider refused the request without a size. The request then has at least `leastTokens` tokens. */
  assume(estimate: ContextEstimate, leastTokens: number): void;
}

export function createSizeGauge(
  counter: TokenCounter,
  calibration: Calibration,
  actual: Actual | null,
  original: readonly unknown[],
): SizeGauge {
  let correction = 1;
  const found = ({ messages, system, tools }: CountedRequest, measured: Actual | null): ContextEstimate =>
    estimateContext(
      { messages: messages as readonly object[], system, tools: tools ?? [] },
      { counter, calibration, actual: measured },
    );
  return {
    get correction(): number {
      return correction;
    },
    estimate(request): ContextEstimate {
      const prefix = actual?.coversMessages ?? 0;
      // Shared references prove that the measured messages are unchanged.
      const holds = actual !== null && sharesPrefix(request.messages, original, prefix);
      const estimate = found(request, holds ? actual : null);
      if (correction === 1) return estimate;
      const scaled = (tokens: number): number => Math.ceil(tokens * correction);
      return {
        ...estimate,
        tokens: scaled(estimate.tokens),
        lowTokens: scaled(estimate.lowTokens),
        highTokens: scaled(estimate.tokens),
      };
    },
    isSmaller(before, after): boolean {
      if (this.estimate(after).tokens < this.estimate(before).tokens) return true;
      return found(after, null).tokens < found(before, null).tokens;
    },
    correct(estimate, observedTokens): void {
      // A tenfold difference is not an error of the estimate. The provider counted another prompt, or the figure was
      // misread.
      const ratio = observedTokens / Math.max(1, estimate.tokens);
      if (ratio > 0.1 && ratio < 10) correction *= ratio;
    },
    assume(estimate, leastTokens): void {
      // The number is assumed and not read from a text, so the bounds of `correct` do not apply.
      correction *= Math.max(1, leastTokens / Math.max(1, estimate.tokens));
    },
  };
}

function sharesPrefix(messages: readonly unknown[], original: readonly unknown[], length: number): boolean {
  if (messages === original) return true;
  if (messages.length < length) return false;
  for (let index = 0; index < length; index++) if (messages[index] !== original[index]) return false;
  return true;
}

/** Zero and null both mean an unknown window. */
export function smallerWindow(one: number | null, other: number | null): number | null {
  const known = [one, other].filter((tokens) => tokens !== null && tokens > 0) as number[];
  return known.length === 0 ? null : Math.min(...known);
}

/** Fills in the defaults. An empty list of tools counts as no tools. */
export function guardedRequest({
  messages,
  system = null,
  tools,
  maxOutputTokens = 8192,
}: GuardRequest): GuardedRequest {
  return { messages, system, maxOutputTokens, ...(tools === undefined || tools.length === 0 ? {} : { tools }) };
}
