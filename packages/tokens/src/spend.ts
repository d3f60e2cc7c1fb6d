import type { CallUsage } from "@throughline/core/internal";
import { canonicalModelId, type ModelName } from "./model-name.ts";
import { defaultPrices, type ModelPrice, type PriceTable } from "./price-table.ts";

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
 * Returns the cost of a call in US dollars. Returns null for a model without a known price, or if the call used a class
 * of tokens whose price is unknown. The result is never a guess.
 */
export function costOf(usage: CallUsage, model: ModelName, prices: PriceTable = defaultPrices): Cost | null {
  const listed = pricesById(prices).get(canonicalModelId(model.modelId));
  if (listed === undefined) return null;
  const { longPrompt } = listed;
  const price = longPrompt !== undefined && usage.promptTokens > longPrompt.aboveTokens ? longPrompt.price : listed;
  return costAt(price, usage);
}

const pricesByTable = new WeakMap<PriceTable, ReadonlyMap<string, ModelPrice>>();

/** Reads each table once, because every call of a session asks for the price of its model. */
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
 * Adds up the usage of a session, call by call. It is plain JSON that the caller stores. `Occupancy` states how full
 * the window is; a spend does not.
 */
export interface Spend {
  /** Counts the calls. */
  readonly calls: number;
  /** Counts prompt tokens that no cache served. */
  readonly input: number;
  /** Counts the tokens that models wrote. */
  readonly output: number;
  /** Counts prompt tokens that a cache served. */
  readonly cacheRead: number;
  /** Counts the tokens written to a cache. */
  readonly cacheWrite: number;
  /** Counts the tokens written to a cache for one hour. They are part of `cacheWrite`. */
  readonly cacheWrite1h: number;
  /** Counts the reasoning tokens. They are part of `output`. */
  readonly reasoning: number;
  /** Holds the cost in US dollars. Null as soon as the cost of one call is unknown. */
  readonly costUsd: number | null;
}

/** Holds a spend without calls, to which `addSpend` adds. */
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
