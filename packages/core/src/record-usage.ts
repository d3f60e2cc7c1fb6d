import { readUsage } from "./call-usage.ts";
import type { Usage } from "./record.ts";

/**
 * What a provider said of a call's tokens as a record keeps it; null when it said nothing usable. `promptTokens` and
 * `occupancyTokens` stand beside the classes only where they are not their sums: when the provider compacted in between.
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
