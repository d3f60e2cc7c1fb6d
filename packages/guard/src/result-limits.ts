import type { ResultLimits } from "./truncate-results.ts";

/** How tool results are shortened where a request does not fit. */
export interface ResultSettings {
  /** What stays of a result. @default "head-and-tail" */
  readonly keep?: "head" | "head-and-tail";
  /**
   * How long one result may stay, in percent of the window at four characters a token. Null: 30 % at three characters and
   * an absolute length, all results together half of the window. @default null
   */
  readonly resultPercent?: number | null;
}

/** Characters that a token of tool output has at least. */
const charactersPerToken = 3;
/** Of an unknown window. */
const assumedWindowTokens = 32_000;
const eachShare = 0.3;
const totalShare = 0.5;

/** No server in use has a smaller window. */
const leastWindowTokens = 2048;

/**
 * The window that tool results have shares of. Where a provider counts more than the estimate, its window holds as much
 * less text. Where none is known it is smaller than what was refused.
 *
 * @param correction what the estimate is multiplied by
 * @param refusedTokens of a request that was refused; null when none was
 */
export function resultWindowTokens(
  windowTokens: number | null,
  correction: number,
  refusedTokens: number | null,
): number | null {
  if (windowTokens === null && refusedTokens === null) return null;
  const tokens = windowTokens ?? Math.min(assumedWindowTokens, refusedTokens ?? assumedWindowTokens);
  return Math.min(tokens, Math.max(leastWindowTokens, Math.floor(tokens / correction)));
}

/** Each by its share of the window and an absolute length, all by half of it. */
export function usualLimits(windowTokens: number | null): ResultLimits {
  const window = windowTokens ?? assumedWindowTokens;
  const mostCharacters = window >= 200_000 ? 64_000 : window >= 100_000 ? 32_000 : 16_000;
  return {
    eachCharacters: Math.min(mostCharacters, Math.floor(window * charactersPerToken * eachShare)),
    totalCharacters: Math.floor(window * charactersPerToken * totalShare),
  };
}

/** The limits that settings mean for a window; null stands for one that is not known. */
export function resultLimitsFor(
  { keep = "head-and-tail", resultPercent = null }: ResultSettings,
  windowTokens: number | null,
): ResultLimits & { readonly keep: "head" | "head-and-tail" } {
  if (resultPercent === null) return { ...usualLimits(windowTokens), keep };
  const eachCharacters = Math.floor(((windowTokens ?? assumedWindowTokens) * 4 * resultPercent) / 100);
  return { eachCharacters, totalCharacters: Number.MAX_SAFE_INTEGER, keep };
}
