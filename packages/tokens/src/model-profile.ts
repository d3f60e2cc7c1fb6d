import type { VocabularyName } from "./load-vocabulary.ts";
import { canonicalModelId, type ModelName } from "./model-name.ts";

/** Describes how a provider turns an image into tokens. */
export type ImageRule =
  /** Divides the pixels by 750, after scaling the image down to `longEdgePx`. `mostTokens` caps the result. */
  | {
      readonly kind: "pixels";
      /** Limits the longest edge in pixels. The provider scales larger images down. */
      readonly longEdgePx: number;
      /** Limits the tokens of one image. */
      readonly mostTokens: number;
    }
  /** Adds a base and a price for each tile of 512 pixels. */
  | {
      readonly kind: "tiles";
      /** Counts the tokens of an image beside its tiles. */
      readonly baseTokens: number;
      /** Counts the tokens of one tile. */
      readonly tileTokens: number;
    }
  /** Counts 258 tokens for each tile of 768 pixels. */
  | { readonly kind: "gemini" }
  /** Counts the same tokens for every image. */
  | {
      readonly kind: "flat";
      /** Counts the tokens of one image. */
      readonly tokens: number;
    };

/** Describes how to estimate the tokens of a model before any observation. */
export interface ModelProfile {
  /** Names the vocabulary that counts texts. */
  readonly vocabulary: VocabularyName;
  /** States how many tokens the model counts for one token of the vocabulary. */
  readonly factor: number;
  /** States how far off the factor may be before any observation, as a share of 1. */
  readonly spread: number;
  /** Counts the tokens that a provider adds once when a request has tools. */
  readonly toolsTokens: number;
  /** Sets the rule that counts images. */
  readonly image: ImageRule;
  /** Cites the origin of the factor and the vocabulary. */
  readonly source: string;
}

const pixels: ImageRule = { kind: "pixels", longEdgePx: 1568, mostTokens: 1600 };
const finePixels: ImageRule = { kind: "pixels", longEdgePx: 2576, mostTokens: 5000 };
const libraryTable = "ai-tokenizer 1.0.6, model table (contentMultiplier, toolsExist)";

/** The published Claude vocabulary yields fewer tokens than the models count. */
const claudeVocabularyFactor = 1.1;

const claude: ModelProfile = {
  vocabulary: "claude",
  factor: claudeVocabularyFactor,
  spread: 0.1,
  toolsTokens: 549,
  image: pixels,
  source: libraryTable,
};

/** The factor is 1.1 for models after the published vocabulary, times 1.3 for their newer tokenizer. */
const newerClaude: ModelProfile = {
  ...claude,
  factor: 1.43,
  spread: 0.25,
  image: finePixels,
  source:
    "platform.claude.com/docs/en/build-with-claude/token-counting: Opus from 4.7, Fable, Mythos and Sonnet 5 use a newer tokenizer, about 30 % more tokens for the same text; assumed for every Claude of generation 5 and later",
};

const openai: ModelProfile = {
  vocabulary: "o200k_base",
  factor: 1,
  spread: 0.05,
  toolsTokens: 24,
  image: { kind: "tiles", baseTokens: 85, tileTokens: 170 },
  source: libraryTable,
};

const others: ModelProfile = { ...openai, spread: 0.15, toolsTokens: 150, image: { kind: "flat", tokens: 1600 } };
const llamaLike: ModelProfile = { ...others, vocabulary: "cl100k_base" };

/**
 * An unknown model gets the vocabulary that yields the most tokens of the three. An estimate that is too high costs a
 * compaction. An estimate that is too low costs a rejected call.
 */
const unknown: ModelProfile = {
  ...claude,
  spread: 0.35,
  toolsTokens: 150,
  image: { kind: "flat", tokens: 1600 },
  source: "none: an assumption on the high side",
};

/** The first match wins. Patterns match canonical ids, in which dashes replace dots. */
const profiles: readonly (readonly [RegExp, ModelProfile])[] = [
  [/^gpt-(?:3|4$|4-(?:turbo|0|32k|1106|vision))/, { ...openai, vocabulary: "cl100k_base", toolsTokens: 16 }],
  [/^gpt-4o-mini/, { ...openai, toolsTokens: 16, image: { kind: "tiles", baseTokens: 2833, tileTokens: 5667 } }],
  [/^(?:gpt-4|chatgpt-4o)/, { ...openai, toolsTokens: 16 }],
  [/^o[1345](?:-|$)/, { ...openai, image: { kind: "tiles", baseTokens: 75, tileTokens: 150 } }],
  [/^gpt-oss/, { ...openai, spread: 0.15, toolsTokens: 40, image: others.image }],
  [/^(?:gpt-|codex)/, { ...openai, toolsTokens: 103, image: { kind: "tiles", baseTokens: 70, tileTokens: 140 } }],
  [/^gemini/, { ...others, factor: 1.08, spread: 0.1, toolsTokens: 0, image: { kind: "gemini" } }],
  [/^(?:qwen|qwq)/, llamaLike],
  [/^(?:mistral|codestral|devstral|magistral|ministral|mixtral)/, { ...llamaLike, toolsTokens: 60 }],
  [/^(?:llama|nova|glm|grok-2)/, { ...llamaLike, spread: 0.2 }],
  [/^(?:deepseek|grok-3)/, others],
];

const ollamaImage: ImageRule = { kind: "flat", tokens: 768 };

/**
 * Returns the assumptions about a model. An unknown model gets a profile that errs on the high side, with a wide
 * spread.
 */
export function modelProfile(model: ModelName): ModelProfile {
  const id = canonicalModelId(model.modelId);
  const found = id.startsWith("claude")
    ? claudeProfile(id)
    : (profiles.find(([pattern]) => pattern.test(id))?.[1] ?? unknown);
  return model.provider === "ollama" ? { ...found, image: ollamaImage } : found;
}

/**
 * Returns the factor for counts by kinds of characters. These counts already match the models' counts. The factor of
 * the Claude vocabulary raised the error on real conversations from 8.5 to 11.8 %.
 */
export function withoutVocabulary({ vocabulary, factor }: ModelProfile): number {
  return vocabulary === "claude" ? factor / claudeVocabularyFactor : factor;
}

function claudeProfile(id: string): ModelProfile {
  if (/^claude-(?:fable|mythos)/.test(id)) return newerClaude;
  const [, family, major, minor] = /^claude-([a-z]+)-(\d+)(?:-(\d{1,2})(?!\d))?/.exec(id) ?? [];
  const isNewer = Number(major) >= 5 || (family === "opus" && Number(major) === 4 && Number(minor) >= 7);
  return isNewer ? newerClaude : claude;
}
