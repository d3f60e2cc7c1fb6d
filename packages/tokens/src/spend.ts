import type { CallUsage } from "@throughline/core/internal";
import { canonicalModelId, type ModelName } from "./model-name.ts";
import { defaultPrices, type ModelPrice, type PriceTable } from "./price-table.ts";

/** US dollars of one call or of many. */
interface Cost {
  /** The part of the prompt that no cache served. */
  readonly inputUsd: number;
  /** What the model wrote. */
  readonly outputUsd: number;
  /** The part of the prompt that a cache served. */
  readonly cacheReadUsd: number;
  /** What was written to a cache. */
  readonly cacheWriteUsd: number;
  /** All of these together. */
  readonly totalUsd: number;
}

/**
 * What a call cost; null for a model without a known price, and where the price of a class that was used is not
 * known. Never a guess.
 */
export function costOf(usage: CallUsage, model: ModelName, prices: PriceTable = defaultPrices): Cost | null {
  const listed = pricesById(prices).get(canonicalModelId(model.modelId));
  if (listed === undefined) return null;
  const { longPrompt } = listed;
  const price = longPrompt !== undefined && usage.promptTokens > longPrompt.aboveTokens ? longPrompt.price : listed;
  return costAt(price, usage);
}

const pricesByTable = new WeakMap<PriceTable, ReadonlyMap<string, ModelPrice>>();

/** A table read once: every call of a session asks for the price of its model. */
function pricesById(prices: PriceTable): ReadonlyMap<string, ModelPrice> {
  let byId = pricesByTable.get(prices);
  if (byId === undefined) {
    byId = new Map(Object.entries(prices.models).map(([id, price]) => [canonicalModelId(id), price]));
    pricesByTable.set(prices, byId);
  }
  return byId;
}

function costAt(price: ModelPrice, usage: CallUsage): Cost | null {
  const cacheRead = usdOf(usage.cacheRead, price.cacheRead);
  const shortWrite = usdOf(usage.cacheWrite - usage.cacheWrite1h, price.cacheWrite);
  const hourWrite = usdOf(usage.cacheWrite1h, price.cacheWrite1h);
  if (cacheRead === null || shortWrite === null || hourWrite === null) return null;
  const inputUsd = (usage.input * price.input) / 1e6;
  const outputUsd = (usage.output * price.output) / 1e6;
  const cacheWriteUsd = shortWrite + hourWrite;
  return {
    inputUsd,
    outputUsd,
    cacheReadUsd: cacheRead,
    cacheWriteUsd,
    totalUsd: inputUsd + outputUsd + cacheRead + cacheWriteUsd,
  };
}

function usdOf(tokens: number, priceUsd: number | null): number | null {
  if (tokens <= 0) return 0;
  return priceUsd === null ? null : (tokens * priceUsd) / 1e6;
}

/**
 * Everything a session has used, call by call. Plain JSON, for the caller to keep. Nothing here says how full the
 * window is: that is `Occupancy`.
 */
export interface Spend {
  /** The number of calls that were counted. */
  readonly calls: number;
  /** Tokens of prompts that no cache served. */
  readonly input: number;
  /** Tokens that models wrote. */
  readonly output: number;
  /** Tokens of prompts that a cache served. */
  readonly cacheRead: number;
  /** Tokens written to a cache. */
  readonly cacheWrite: number;
  /** Part of `cacheWrite`. */
  readonly cacheWrite1h: number;
  /** Part of `output`. */
  readonly reasoning: number;
  /** Null as soon as one call had no known cost. */
  readonly costUsd: number | null;
}

/** A spend without calls, to add to. */
export const nothingSpent: Spend = {
  calls: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  reasoning: 0,
  costUsd: 0,
};

/** Adds a call. One that was aborted counts too when its provider reports usage: it is billed. */
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
