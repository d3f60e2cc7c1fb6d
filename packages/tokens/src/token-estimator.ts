import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  assertArgument,
  type OptionKind,
} from "@throughline/core/internal";
import { createCountCache } from "./count-cache.ts";
import { countByCharacterKind } from "./heuristic-count.ts";
import { loadVocabulary, tokenizerVersion, type LoadVocabulary, type VocabularyName } from "./load-vocabulary.ts";
import type { ModelName } from "./model-name.ts";
import { modelProfile, withoutVocabulary, type ModelProfile } from "./model-profile.ts";
import { countByLength, countInSlices, type CountTokens, type CountWork } from "./text-counter.ts";
import { createTokenCounter, type CountMethod, type TokenCounter } from "./token-counter.ts";

/** Configures `createTokenEstimator`. */
export interface TokenEstimatorOptions {
  /** Loads vocabularies. @default the packed ones of this package */
  readonly loadVocabulary?: LoadVocabulary | undefined;
  /** Overrides the table of models. @default the table */
  readonly profileOf?: ((model: ModelName) => ModelProfile) | undefined;
  /** Runs once for each vocabulary that cannot be loaded. Counting then falls back to the kinds of characters. */
  readonly onFallback?: ((vocabulary: VocabularyName, cause: unknown) => void) | undefined;
  /** Limits the messages whose counts are cached. @default 8192 */
  readonly cacheEntries?: number | undefined;
}

/** Configures one counter. */
interface CounterOptions {
  /** Sets a vocabulary, or a rule by characters. @default the vocabulary of the model's profile */
  readonly method?: CountMethod | undefined;
}

const { callback, integer, oneOf } = optionKinds;
const estimatorTable: OptionTable<TokenEstimatorOptions> = {
  loadVocabulary: callback,
  profileOf: callback,
  onFallback: callback,
  cacheEntries: integer({ min: 0 }),
};

// The check allows additional fields, because callers may pass a model object that has more than its name.
const modelName: OptionKind = {
  expected: "an object with a `modelId`, and a `provider` that is a text or null",
  accepts: isModelName,
};
const counterTable: OptionTable<CounterOptions> = {
  method: oneOf(["claude", "o200k_base", "cl100k_base", "heuristic", "chars4"] satisfies CountMethod[]),
};

function isModelName(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { provider, modelId } = value as Partial<Record<keyof ModelName, unknown>>;
  return typeof modelId === "string" && (provider === null || typeof provider === "string");
}

/** Creates counters for models. The counters share vocabularies and cached counts. */
export interface TokenEstimator {
  /** Holds the work that counting has cost since the estimator was created. */
  readonly work: Readonly<CountWork>;
  /**
   * Returns a counter for a model. The first call loads the model's vocabulary; `onFallback` reports a load that fails.
   * @throws {ThroughlineError} INPUT_INVALID
   */
  counterFor(model: ModelName, options?: CounterOptions): Promise<TokenCounter>;
}

/** Creates an estimator that counts the tokens of texts, messages and requests. */
export function createTokenEstimator(options: TokenEstimatorOptions = {}): TokenEstimator {
  assertKnownOptions<TokenEstimatorOptions>("createTokenEstimator", options, estimatorTable);
  const load = options.loadVocabulary ?? loadVocabulary;
  const profileOf = options.profileOf ?? modelProfile;
  const work: CountWork = { slices: 0, characters: 0, sampledSlices: 0, cacheHits: 0 };
  const cache = createCountCache(options.cacheEntries ?? 8192, () => (work.cacheHits += 1));
  const loading = new Map<VocabularyName, Promise<CountTokens | null>>();

  function vocabulary(name: VocabularyName): Promise<CountTokens | null> {
    const known = loading.get(name);
    if (known !== undefined) return known;
    const loaded = load(name).catch((cause: unknown) => {
      options.onFallback?.(name, cause);
      return null;
    });
    loading.set(name, loaded);
    return loaded;
  }

  async function slicesFor(method: CountMethod): Promise<CountTokens | null> {
    return method === "heuristic" || method === "chars4" ? null : vocabulary(method);
  }

  return {
    work,
    async counterFor(model, counterOptions = {}) {
      assertArgument("counterFor", "model", model, modelName);
      assertKnownOptions<CounterOptions>("counterFor", counterOptions, counterTable);
      const { method: wanted } = counterOptions;
      const assumed = profileOf(model);
      const countSlice = await slicesFor(wanted ?? assumed.vocabulary);
      const method = countSlice === null && wanted !== "chars4" ? "heuristic" : (wanted ?? assumed.vocabulary);
      const profile = profileFor(method, assumed);
      const version = countSlice === null ? `${method}@1` : `${tokenizerVersion}/${method}`;
      return createTokenCounter({
        model,
        profile,
        method,
        version,
        cache,
        countText: countTextWith(method, countSlice, work),
      });
    },
  };
}

/** A factor applies only to the vocabulary with which it was measured. */
function profileFor(method: CountMethod, assumed: ModelProfile): ModelProfile {
  if (method === assumed.vocabulary) return assumed;
  if (method === "heuristic") return { ...assumed, factor: withoutVocabulary(assumed) };
  return { ...assumed, factor: 1, spread: Math.max(assumed.spread, 0.3) };
}

function countTextWith(method: CountMethod, countSlice: CountTokens | null, work: CountWork): CountTokens {
  if (method === "chars4") return countByLength;
  return (text) => countInSlices(text, countSlice ?? countByCharacterKind, work);
}
