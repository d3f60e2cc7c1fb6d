import type { ModelPrices } from "@throughline/tokens/internal";
import type { LedgerSums } from "./ledger.ts";
import { isUndated, startOf } from "./time-labels.ts";
import { UsageSum, type UsageTotals } from "./usage-sums.ts";

/** Holds the usage of a window of five hours, as providers count them for subscriptions. */
export interface UsageBlock extends UsageTotals {
  /** States the start of the window: the hour of its first call in UTC, in milliseconds since 1970. */
  readonly startMs: number;
  /** States the end of the window, in milliseconds since 1970. */
  readonly endMs: number;
}

const hourMs = 60 * 60 * 1000;
const blockMs = 5 * hourMs;

/** A window begins with the hour of the first call after the window before it. A call without a time is in none. */
export function usageBlocks(groups: readonly LedgerSums[], prices: ModelPrices): readonly UsageBlock[] {
  const blocks: { readonly startMs: number; readonly sum: UsageSum }[] = [];
  const dated = groups.filter(({ quarter }) => !isUndated(quarter));
  for (const group of dated.toSorted((one, other) => one.quarter - other.quarter)) {
    const atMs = startOf(group.quarter);
    let block = blocks.at(-1);
    if (block === undefined || atMs >= block.startMs + blockMs) {
      block = { startMs: Math.floor(atMs / hourMs) * hourMs, sum: new UsageSum() };
      blocks.push(block);
    }
    block.sum.add(group, prices);
  }
  return blocks.map(({ startMs, sum }) => ({ startMs, endMs: startMs + blockMs, ...sum.totals() }));
}
