import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import type { ContextEstimate, EstimateSource } from "./context-estimate.ts";

/** How full a window is. */
export interface Gauge {
  /** The estimate of the prompt. */
  readonly tokens: number;
  /** Whether a provider measured the size, or how it was counted. */
  readonly source: EstimateSource;
  /** The lower end of the estimate's band. */
  readonly lowTokens: number;
  /** The upper end of the estimate's band. */
  readonly highTokens: number;
  /** Null if unknown; then there is no percentage and no threshold is crossed. */
  readonly windowTokens: number | null;
  /** For decisions: over 100 when the window is exceeded. */
  readonly percent: number | null;
  /** For display: within 0 and 100. */
  readonly displayPercent: number | null;
  /** Tokens until compaction is due, 0 when it is; null when that point or the window is not known. */
  readonly tokensToCompaction: number | null;
}

/** The window, and where compaction begins. */
export interface GaugeOptions {
  /** The model's window; 0 and null stand for unknown. */
  readonly windowTokens: number | null;
  /** Where compaction is due. @default null */
  readonly compactionTokens?: number | null;
}

const size = optionKinds.orNull(optionKinds.number());
const gaugeTable: OptionTable<GaugeOptions> = { windowTokens: optionKinds.required(size), compactionTokens: size };

/** How full the model's window is, from an estimate. */
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
