/**
 * Holds prices in US dollars per million tokens. Null means that the provider names no price, so a call that needs it
 * has no known cost.
 */
export interface ModelPrice {
  /** Prices prompt tokens that no cache served. */
  readonly input: number;
  /** Prices tokens that the model wrote. */
  readonly output: number;
  /** Prices prompt tokens that a cache served. */
  readonly cacheRead: number | null;
  /** Prices tokens written to a cache for the provider's usual time. */
  readonly cacheWrite: number | null;
  /** Prices tokens written to a cache for one hour. */
  readonly cacheWrite1h: number | null;
  /** Replaces the price of the whole call once its prompt, cached or not, exceeds `aboveTokens`. */
  readonly longPrompt?: {
    /** States the longest prompt at the usual price, in tokens. */
    readonly aboveTokens: number;
    /** Sets the prices of calls with a longer prompt. */
    readonly price: ModelPrice;
  };
}

/** Lists prices by model. A model that is not listed has no known price. */
export interface PriceTable {
  /** States the day when the prices were looked up, as `YYYY-MM-DD`. The table does not update itself. */
  readonly asOf: string;
  /** Cites the pages that state the prices. */
  readonly source: string;
  /** Maps model ids in any spelling to prices. If several spellings name one model, the last entry counts. */
  readonly models: Readonly<Record<string, ModelPrice>>;
}

/**
 * Anthropic's cache prices are multiples of the input price: 0.1 to read unless stated, 1.25 to write, 2 for an hour.
 */
function claude(input: number, output: number, cacheRead: number = input / 10): ModelPrice {
  return { input, output, cacheRead, cacheWrite: input * 1.25, cacheWrite1h: input * 2 };
}

/** OpenAI and Google bill nothing for filling their caches. */
function plain(input: number, output: number, cacheRead: number | null): ModelPrice {
  return { input, output, cacheRead, cacheWrite: 0, cacheWrite1h: null };
}

/**
 * Lists known prices. Models whose price depends on batch, priority or region have their standard price, because this
 * package does not see these settings. Models whose price for long prompts is missing in the source are left out.
 */
export const defaultPrices: PriceTable = {
  asOf: "2026-10-24",
  source:
    "Claude: platform.claude.com/docs/en/about-claude/pricing, as of 2026-10-24. GPT, o-series: model table of ai-tokenizer 1.0.6, released 2026-05-08.",
  models: {
    "claude-fable-5-1": claude(10, 50, 0.25),
    "claude-fable-5": claude(10, 50),
    "claude-opus-5-5": claude(4, 20, 0.2),
    "claude-opus-5": claude(5, 25),
    "claude-opus-4-8": claude(5, 25),
    "claude-opus-4-7": claude(5, 25),
    "claude-opus-4-6": claude(5, 25),
    "claude-opus-4-5": claude(5, 25),
    "claude-opus-4-1": claude(15, 75),
    "claude-opus-4": claude(15, 75),
    "claude-sonnet-5-5": claude(2, 10, 0.1),
    "claude-sonnet-5": claude(2, 10),
    "claude-sonnet-4-6": claude(3, 15),
    "claude-sonnet-4-5": claude(3, 15),
    "claude-sonnet-4": claude(3, 15),
    "claude-haiku-5-5": {
      ...claude(0.1, 0.5),
      longPrompt: { aboveTokens: 100_000, price: claude(0.5, 2.5) },
    },
    "claude-haiku-4-5": claude(1, 5),
    "claude-3-5-haiku": claude(0.8, 4),
    "gpt-4o": plain(2.5, 10, 1.25),
    "gpt-4o-mini": plain(0.15, 0.6, 0.075),
    "gpt-4.1": plain(2, 8, 0.5),
    "gpt-4.1-mini": plain(0.4, 1.6, 0.1),
    "gpt-5": plain(1.25, 10, 0.125),
    "gpt-5-mini": plain(0.25, 2, 0.025),
    "gpt-5-nano": plain(0.05, 0.4, 0.005),
    "gpt-5-pro": plain(15, 120, null),
    "gpt-5-codex": plain(1.25, 10, 0.125),
    "gpt-5.1-codex": plain(1.25, 10, 0.125),
    "gpt-5.1-codex-mini": plain(0.25, 2, 0.025),
    o1: plain(15, 60, 7.5),
    o3: plain(2, 8, 0.5),
    "o3-mini": plain(1.1, 4.4, 0.55),
    "o4-mini": plain(1.1, 4.4, 0.275),
  },
};
