import type { ResultLimits } from "./truncate-results.ts";

/** Sets how tool results are shortened when a request does not fit. */
export interface ResultSettings {
  /** States which part of a result stays. @default "head-and-tail" */
  readonly keep?: "head" | "head-and-tail";
  /**
   * Limits one result, in percent of the window at four characters a token. Null limits one result to 30 % at three
   * characters a token and to an absolute length, and all results together to half of the window.
   * @default null
   */
  readonly resultPercent?: number | null;
}

/** Tool output has at least this many characters a token. */
const charactersPerToken = 3;
/** This window is assumed when no window is known. */
const assumedWindowTokens = 32_000;
const eachShare = 0.3;
const totalShare = 0.5;

/** No server in use has a smaller window. */
const leastWindowTokens = 2048;

/**
 * Returns the window that the shares of tool results refer to. When a provider counts more than the estimate, its
 * window holds less text. An unknown window is assumed smaller than the refused request.
 *
 * @param correction the factor that the estimate is multiplied by
 * @param refusedTokens the size of the refused request; null when no request was refused
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

/**
 * Limits each result by a share of the window and by an absolute length. All results together may fill half of the
 * window.
 */
export function usualLimits(windowTokens: number | null): ResultLimits {
  const window = windowTokens ?? assumedWindowTokens;
  const mostCharacters = window >= 200_000 ? 64_000 : window >= 100_000 ? 32_000 : 16_000;
  return {
    eachCharacters: Math.min(mostCharacters, Math.floor(window * charactersPerToken * eachShare)),
    totalCharacters: Math.floor(window * charactersPerToken * totalShare),
  };
}

/** A null window means unknown and is replaced by `assumedWindowTokens`. */
export function resultLimitsFor(
  { keep = "head-and-tail", resultPercent = null }: ResultSettings,
  windowTokens: number | null,
): ResultLimits & { readonly keep: "head" | "head-and-tail" } {
  if (resultPercent === null) return { ...usualLimits(windowTokens), keep };
  const eachCharacters = Math.floor(((windowTokens ?? assumedWindowTokens) * 4 * resultPercent) / 100);
  return { eachCharacters, totalCharacters: Number.MAX_SAFE_INTEGER, keep };
}
