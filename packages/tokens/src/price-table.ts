import { canonicalModelId } from "./model-name.ts";
import { asOf, rows } from "./price-snapshot.ts";

/** Holds prices in US dollars per million tokens. */
export interface TokenPrices {
  /** Prices prompt tokens that no cache served. */
  readonly input: number;
  /** Prices tokens that the model wrote. */
  readonly output: number;
  /** Prices prompt tokens that a cache served. @default `input` */
  readonly cacheRead?: number;
  /** Prices tokens written to a cache for the provider's usual time. @default `input` */
  readonly cacheWrite?: number;
  /** Prices tokens written to a cache for one hour. @default `cacheWrite` */
  readonly cacheWrite1h?: number;
}

/** Holds the prices of a model, and those of its longer prompts. */
export interface ModelPrice extends TokenPrices {
  /** Replaces the prices of a whole call by the length of its prompt, in ascending order. @default none */
  readonly longPrompts?: readonly (TokenPrices & {
    /** States the longest prompt at the price before, in tokens. */
    readonly aboveTokens: number;
  })[];
}

/**
 * Maps model names in any spelling to prices. A name that ends with `*` stands for every name that starts with it,
 * except for other versions.
 */
export type ModelPrices = Readonly<Record<string, ModelPrice>>;

let read: ModelPrices | null = null;

/**
 * Returns the prices of a dated catalog. Models whose price depends on batch, priority, region or the hour have their
 * standard price, because a usage does not state these. They are read on first use, because few commands need them.
 */
function catalog(): ModelPrices {
  return (read ??= Object.fromEntries(rows.flatMap(readRow)));
}

/** States the day of the catalog, as `YYYY-MM-DD`. It does not update itself. */
export const pricesAsOf: string = asOf;

/** Lists the names that the catalog prices. */
export function catalogNames(): readonly string[] {
  return Object.keys(catalog()).filter((name) => !name.endsWith("*"));
}

function readRow(row: string): readonly (readonly [string, ModelPrice])[] {
  const end = row.indexOf(": ");
  const [usual = "", ...longer] = row.slice(0, end).split(" >");
  const longPrompts = longer.map((step) => {
    const [aboveTokens, prices = ""] = step.split(" ");
    return { aboveTokens: Number(aboveTokens), ...readPrices(prices) };
  });
  const price = { ...readPrices(usual), ...(longPrompts.length === 0 ? {} : { longPrompts }) };
  return row
    .slice(end + 2)
    .split(" ")
    .map((name) => [name, price] as const);
}

function readPrices(text: string): TokenPrices {
  const [input = 0, output = 0, cacheRead, cacheWrite, cacheWrite1h] = text
    .split("/")
    .map((price) => (price === "" ? undefined : Number(price)));
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(cacheWrite1h === undefined ? {} : { cacheWrite1h }),
  };
}

/** Holds prices by names in one spelling. */
interface PriceIndex {
  readonly exact: ReadonlyMap<string, ModelPrice>;
  /** Holds the beginnings of names, the longest first. */
  readonly beginnings: readonly (readonly [string, ModelPrice])[];
  /** Holds what was found for the last names, because many sums are of few models. */
  readonly found: Map<string, ModelPrice | null>;
}

const indexes = new WeakMap<ModelPrices, PriceIndex>();

/**
 * Returns the price of a model in any spelling, or null when neither the caller's prices nor the catalog list it. The
 * caller's prices go first. A name with a date has its own price if it is listed, else that of the name without it.
 */
export function findPrice(modelId: string, prices: ModelPrices): ModelPrice | null {
  return priceIn(indexOf(prices), modelId) ?? priceIn(indexOf(catalog()), modelId);
}

function priceIn(index: PriceIndex, modelId: string): ModelPrice | null {
  let price = index.found.get(modelId);
  if (price === undefined) {
    if (index.found.size >= mostFound) index.found.clear();
    index.found.set(modelId, (price = searchPrice(index, modelId)));
  }
  return price;
}

const mostFound = 256;

function searchPrice({ exact, beginnings }: PriceIndex, modelId: string): ModelPrice | null {
  const id = canonicalModelId(modelId);
  const found = exact.get(dashed(modelId)) ?? exact.get(id);
  if (found !== undefined) return found;
  return (
    beginnings.find(([start]) => id.startsWith(start) && isSameVersion(start, id.slice(start.length)))?.[1] ?? null
  );
}

/** Reads each table once, because every call of a session asks for the price of its model. */
function indexOf(prices: ModelPrices): PriceIndex {
  let index = indexes.get(prices);
  if (index === undefined) {
    const named = Object.entries(prices).map(([name, price]) => [name.replace(/\*$/, ""), price, name] as const);
    const beginnings = named
      .filter(([, , name]) => name.endsWith("*"))
      .map(([name, price]) => [canonicalModelId(name), price] as const)
      .toSorted(([one], [other]) => other.length - one.length);
    const exact = new Map(named.map(([name, price]) => [dashed(name), price]));
    index = { exact, beginnings, found: new Map() };
    indexes.set(prices, index);
  }
  return index;
}

function dashed(modelId: string): string {
  return modelId
    .toLowerCase()
    .slice(modelId.lastIndexOf("/") + 1)
    .replaceAll(".", "-");
}

/** `claude-sonnet-5` does not price `claude-sonnet-5-5`, and `gpt-4` does not price `gpt-4o`. */
function isSameVersion(start: string, rest: string): boolean {
  return start.endsWith("-") || (/^[-@:]/.test(rest) && !/^-\d{1,2}(?!\d)/.test(rest));
}
