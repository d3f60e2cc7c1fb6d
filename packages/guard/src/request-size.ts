import { type ContextEstimate, estimateContext } from "@throughline/tokens";
import { type Actual, type Calibration, type TokenCounter } from "@throughline/tokens/internal";
import type { GuardedRequest, GuardRequest } from "./guard-options.ts";
import type { OverflowKind } from "./overflow.ts";

/**
 * The most tokens of system, tools and messages, so that a full answer fits and estimates may be slightly wrong. A
 * tenth of the window stays free, or the answer and 2 % if that is more. 200,000 tokens leave 180,000. Of an estimate
 * that is less sure up to 15 % more is left, so that what is cut by it need not be cut twice.
 *
 * @param sureShare the estimate over its upper bound
 */
export function safePromptTokens(windowTokens: number, maxOutputTokens: number | null, sureShare = 1): number {
  // A budget as large as a small window is lowered later; it must not leave a prompt of nothing.
  const output = Math.min(outputReserve(windowTokens, maxOutputTokens), windowTokens / 4);
  const safe = windowTokens - Math.max(output + windowTokens * 0.02, windowTokens * 0.1);
  return Math.floor(Math.max(safe * 0.85, Math.min(safe, (windowTokens - output) * sureShare)));
}

/** What providers take the answer's budget for: a part of the window. Null when it is not sent. */
export function outputReserve(windowTokens: number, maxOutputTokens: number | null): number {
  return maxOutputTokens === null ? 0 : Math.min(maxOutputTokens, windowTokens);
}

/** What does not fit; null when everything does or nothing is known. */
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

/** Estimates requests, the unchanged one by its last actual, and corrects by what a provider said of one. */
export interface SizeGauge {
  /** Greater than 1 when the provider counted more than the estimate. */
  readonly correction: number;
  estimate(request: CountedRequest): ContextEstimate;
  /** Whether the second request is smaller: as estimated, or by one way of counting both where a measured size holds for one. */
  isSmaller(before: CountedRequest, after: CountedRequest): boolean;
  /** A provider said how many tokens the request has. */
  correct(estimate: ContextEstimate, observedTokens: number): void;
  /** A provider refused the request without saying why it is too large: it has at least this number of tokens. */
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
      // Shared references show that nothing the actual covers was changed.
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
      // Ten times more is another request: a gateway's own prompt, or a figure read wrongly.
      const ratio = observedTokens / Math.max(1, estimate.tokens);
      if (ratio > 0.1 && ratio < 10) correction *= ratio;
    },
    assume(estimate, leastTokens): void {
      // No figure was read here, so none can have been read wrongly.
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

/** The smaller of two, where 0 and null stand for unknown. */
export function smallerWindow(one: number | null, other: number | null): number | null {
  const known = [one, other].filter((tokens) => tokens !== null && tokens > 0) as number[];
  return known.length === 0 ? null : Math.min(...known);
}

/** A request with its defaults. */
export function guardedRequest({
  messages,
  system = null,
  tools,
  maxOutputTokens = 8192,
}: GuardRequest): GuardedRequest {
  return { messages, system, maxOutputTokens, ...(tools === undefined || tools.length === 0 ? {} : { tools }) };
}
