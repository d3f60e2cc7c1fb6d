import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { ContextEstimate, EstimateSource } from "./context-estimate.ts";

/** Describes how full a context window is. */
export interface Gauge {
  /** Holds the estimated tokens of the prompt. */
  readonly tokens: number;
  /** States whether a provider measured the size, or how the counter estimated it. */
  readonly source: EstimateSource;
  /** Holds the lower end of the estimate's band in tokens. */
  readonly lowTokens: number;
  /** Holds the upper end of the estimate's band in tokens. */
  readonly highTokens: number;
  /** Holds the size of the window in tokens. Null means unknown: then there is no percentage and no threshold fires. */
  readonly windowTokens: number | null;
  /** Holds the fill for decisions, over 100 when the prompt exceeds the window. Null when the window is unknown. */
  readonly percent: number | null;
  /** Holds the fill for display, clamped to 0 to 100. Null when the window is unknown. */
  readonly displayPercent: number | null;
  /** Holds the tokens until compaction is due, or 0 when it is due. Null when that point or the window is unknown. */
  readonly tokensToCompaction: number | null;
}

/** Sets the window and the point at which compaction begins. */
export interface GaugeOptions {
  /** Sets the model's window in tokens; 0 and null mean unknown. */
  readonly windowTokens: number | null;
  /** Sets the size in tokens at which compaction is due. @default null */
  readonly compactionTokens?: number | null | undefined;
}

const size = optionKinds.orNull(optionKinds.number());
const gaugeTable: OptionTable<GaugeOptions> = { windowTokens: optionKinds.required(size), compactionTokens: size };

/** Returns how full the model's window is, based on an estimate. */
export function gaugeOf(estimate: ContextEstimate, options: GaugeOptions): Gauge {
  assertKnownOptions<GaugeOptions>("gaugeOf", options, gaugeTable);
  const { windowTokens, compactionTokens } = options;
  const { tokens, source, lowTokens, highTokens } = estimate;
  const window = windowTokens !== null && windowTokens > 0 ? windowTokens : null;
  const percent = window === null ? null : (tokens * 100) / window;
  const due = window === null ? null : (compactionTokens ?? null);
  return {
    tokens,
    source,
    lowTokens,
    highTokens,
    windowTokens: window,
    percent,
    displayPercent: percent === null ? null : Math.min(100, Math.max(0, percent)),
    tokensToCompaction: due === null ? null : Math.max(0, due - tokens),
  };
}
