import { isFields, type Fields } from "@throughline/core/internal";
import type { Usage } from "@throughline/core";
import type { RecordBody } from "../unit-records.ts";
import { countOf } from "../token-count.ts";

export const provider = "github-copilot";

const countNames = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const;
type Counts = Readonly<Record<(typeof countNames)[number], number>>;

/**
 * Computes usage from the counts that the program writes at the end of each run, by model. A run that ends several
 * times repeats its start time, and its later counts include the earlier ones.
 */
export class RunUsage {
  readonly #counted = new Map<string, Counts>();

  recordsOf({ modelMetrics: metrics, sessionStartTime: start }: Fields): readonly RecordBody[] {
    if (!isFields(metrics)) return [];
    return Object.entries(metrics).flatMap(([model, facts]) => {
      const counts = countsIn(facts);
      const run = typeof start === "number" || typeof start === "string" ? `${start} ${model}` : null;
      const before = run === null ? undefined : this.#counted.get(run);
      if (run !== null) this.#counted.set(run, counts);
      const isContinued = before !== undefined && countNames.every((name) => counts[name] >= before[name]);
      const usage = usageOf(isContinued ? difference(counts, before) : counts);
      return usage === null ? [] : [{ type: "usage", kind: "copilot-cli.run", usage, provider, model }];
    });
  }
}

function countsIn(facts: unknown): Counts {
  const stated = isFields(facts) && isFields(facts["usage"]) ? facts["usage"] : {};
  return Object.fromEntries(countNames.map((name) => [name, countOf(stated[name])])) as Counts;
}

function difference(counts: Counts, before: Counts): Counts {
  return Object.fromEntries(countNames.map((name) => [name, counts[name] - before[name]])) as Counts;
}

/** The program's input count includes cached tokens, so they are subtracted. */
function usageOf(counts: Counts): Usage | null {
  const { outputTokens: output, cacheReadTokens: cacheRead, cacheWriteTokens: cacheWrite, reasoningTokens } = counts;
  const input = Math.max(0, counts.inputTokens - cacheRead - cacheWrite);
  const totalTokens = input + output + cacheRead + cacheWrite;
  if (totalTokens === 0) return null;
  const usage = { input, output, cacheRead, cacheWrite, totalTokens };
  return reasoningTokens === 0 ? usage : { ...usage, reasoning: reasoningTokens };
}
