import type { CallUsage, Spend } from "@throughline/core/internal";
import type { ModelName } from "./model-name.ts";
import { findPrice, type ModelPrices, type TokenPrices } from "./price-table.ts";

/** Holds the US dollars of one or more calls. */
interface Cost {
  /** Prices the part of the prompt that no cache served. */
  readonly inputUsd: number;
  /** Prices the tokens that the model wrote. */
  readonly outputUsd: number;
  /** Prices the part of the prompt that a cache served. */
  readonly cacheReadUsd: number;
  /** Prices the tokens written to a cache. */
  readonly cacheWriteUsd: number;
  /** Adds up all these costs. */
  readonly totalUsd: number;
}

/**
 * Returns the cost of a call in US dollars, or null for a model without a known price. A class without a price of its
 * own has that of the input.
 * @param prices prices that go before those of the catalog
 */
export function costOf(usage: PricedUsage, model: ModelName, prices: ModelPrices = noPrices): Cost | null {
  const listed = findPrice(model.modelId, prices);
  if (listed === null) return null;
  return costAt(listed.longPrompts?.findLast(({ aboveTokens }) => usage.promptTokens > aboveTokens) ?? listed, usage);
}

/** Holds the counts that decide the cost of a call. */
export type PricedUsage = Omit<CallUsage, "occupancyTokens" | "reasoning">;

const noPrices: ModelPrices = {};

function costAt(price: TokenPrices, usage: PricedUsage): Cost {
  const { input, output, cacheRead = input, cacheWrite = input, cacheWrite1h = cacheWrite } = price;
  const inputUsd = (usage.input * input) / 1e6;
  const outputUsd = (usage.output * output) / 1e6;
  const cacheReadUsd = (usage.cacheRead * cacheRead) / 1e6;
  const shortWrite = Math.max(0, usage.cacheWrite - usage.cacheWrite1h);
  const cacheWriteUsd = (shortWrite * cacheWrite + usage.cacheWrite1h * cacheWrite1h) / 1e6;
  const totalUsd = inputUsd + outputUsd + cacheReadUsd + cacheWriteUsd;
  return { inputUsd, outputUsd, cacheReadUsd, cacheWriteUsd, totalUsd };
}

/**
 * Adds a call and returns the new spend. An aborted call counts too if its provider reports usage, because the provider
 * bills it.
 */
export function addSpend(spend: Spend, usage: CallUsage, cost: Cost | null): Spend {
  return {
    calls: spend.calls + 1,
    input: spend.input + usage.input,
    output: spend.output + usage.output,
    cacheRead: spend.cacheRead + usage.cacheRead,
    cacheWrite: spend.cacheWrite + usage.cacheWrite,
    cacheWrite1h: spend.cacheWrite1h + usage.cacheWrite1h,
    reasoning: spend.reasoning + usage.reasoning,
    costUsd: spend.costUsd === null || cost === null ? null : spend.costUsd + cost.totalUsd,
  };
}
