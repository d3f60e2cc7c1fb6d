import type { ModelPrices } from "@throughline/tokens/internal";
import { UsageLedger } from "./ledger.ts";
import { scopeOf } from "./refresh-ledger.ts";
import { quarterOf } from "./time-labels.ts";
import { usageBlocks, type UsageBlock } from "./usage-blocks.ts";
import { UsageSum, type UsageTotals } from "./usage-sums.ts";

/** Holds the usage of the last hours. */
export interface RecentUsage {
  readonly total: UsageTotals;
  readonly blocks: readonly UsageBlock[];
}

/**
 * Adds up what the file of a reader holds, without its store. A store takes longer to open than a status line may take.
 * The sums are those of the reader's last answer.
 * @param times the start of the total and of the windows, in milliseconds since 1970
 */
export function readKeptUsage(
  path: string,
  { namespace, totalSinceMs, blocksSinceMs }: { namespace: string; totalSinceMs: number; blocksSinceMs: number },
  prices: ModelPrices,
): RecentUsage {
  const ledger = new UsageLedger(path);
  try {
    const from = quarterOf(totalSinceMs);
    const sums = ledger.sumsSince(scopeOf({ namespace }), quarterOf(Math.min(totalSinceMs, blocksSinceMs)));
    const total = new UsageSum();
    for (const each of sums) if (each.quarter >= from) total.add(each, prices);
    const recent = sums.filter(({ quarter }) => quarter >= quarterOf(blocksSinceMs));
    return { total: total.totals(), blocks: usageBlocks(recent, prices) };
  } finally {
    ledger.close();
  }
}
