import { readUsage } from "./call-usage.ts";
import type { Usage } from "./record.ts";

/**
 * Converts a provider's token counts to the form that a record keeps; null without usable counts. `promptTokens` and
 * `occupancyTokens` are added only when they differ from the sums, which happens when the provider compacted during the
 * call.
 */
export function recordUsage(usage: unknown, reasoningTokens: number | null = null): Usage | null {
  const read = readUsage(usage);
  if (read === null) return null;
  const { input, output, cacheRead, cacheWrite, cacheWrite1h, promptTokens, occupancyTokens } = read;
  const reasoning = reasoningTokens ?? read.reasoning;
  const totalTokens = input + output + cacheRead + cacheWrite;
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    ...(reasoning > 0 ? { reasoning } : {}),
    ...(cacheWrite1h > 0 ? { cacheWrite1h } : {}),
    totalTokens,
    ...(occupancyTokens === totalTokens ? {} : { promptTokens, occupancyTokens }),
  };
}
