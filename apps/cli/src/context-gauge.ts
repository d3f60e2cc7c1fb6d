import type { Context } from "@throughline/history";
import { percentOf } from "./session-row.ts";

/** How full the window is, as `--json` shows it. */
export interface ContextGauge {
  readonly tokens: number | null;
  /** `actual`: counted by the provider at the last call. `unknown`: no call's count still holds. */
  readonly source: "actual" | "unknown";
  readonly lowTokens: number | null;
  readonly highTokens: number | null;
  readonly windowTokens: number | null;
  readonly percent: number | null;
}

/** What each part takes; null where nobody has counted. */
export interface ContextBreakdown {
  readonly systemTokens: number | null;
  readonly toolsTokens: number | null;
  readonly summaryTokens: number | null;
  readonly messageTokens: number | null;
  readonly toolResultTokens: number | null;
}

/** No part is counted by a provider, and a guess would not add up to its total. */
export const unknownBreakdown: ContextBreakdown = {
  systemTokens: null,
  toolsTokens: null,
  summaryTokens: null,
  messageTokens: null,
  toolResultTokens: null,
};

/**
 * The occupancy after the last call whose count still holds: its input, what the cache read and wrote, and its output;
 * never a sum over calls. A count does not hold after a compaction or an edit of what stood before it, after a change
 * of model, or when the call was aborted, failed, or counted nothing.
 */
export function contextGauge(context: Context, windowTokens: number | null): ContextGauge {
  const tokens = lastActualTokens(context);
  if (tokens === null) {
    return { tokens, source: "unknown", lowTokens: null, highTokens: null, windowTokens, percent: null };
  }
  return {
    tokens,
    source: "actual",
    lowTokens: tokens,
    highTokens: tokens,
    windowTokens,
    percent: percentOf(tokens, windowTokens),
  };
}

function lastActualTokens({ messages, model }: Context): number | null {
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") continue;
    // Whatever is older than a message that saw another beginning is older still.
    if (message.isPrefixChanged) return null;
    if (message.stopReason === "aborted" || message.stopReason === "error" || message.usage === null) continue;
    const { input, output, cacheRead, cacheWrite } = message.usage;
    const total = [input, output, cacheRead, cacheWrite].reduce(
      (sum, part) => sum + (Number.isFinite(part) ? part : 0),
      0,
    );
    if (total <= 0) continue;
    return model !== null && message.model !== null && message.model !== model.modelId ? null : total;
  }
  return null;
}
