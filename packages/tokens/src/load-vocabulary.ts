import type { CountTokens } from "./text-counter.ts";

/** The vocabularies that can be loaded. 2 to 8 MB each, so none is until it is needed. */
export type VocabularyName = "claude" | "o200k_base" | "cl100k_base";

/** Gives a counter for one slice of text; rejects when the vocabulary cannot be had. */
export type LoadVocabulary = (name: VocabularyName) => Promise<CountTokens>;

/** Part of every cache and calibration key: counts of another tokenizer or version are not comparable. */
export const tokenizerVersion = "ai-tokenizer@1.0.6";

/** The tokenizer keeps what it merged. A piece is at most a slice long, so this many stay within some megabytes. */
const mergeCacheEntries = 8192;

const importers = {
  claude: () => import("ai-tokenizer/encoding/claude"),
  o200k_base: () => import("ai-tokenizer/encoding/o200k_base"),
  cl100k_base: () => import("ai-tokenizer/encoding/cl100k_base"),
};

/** Loads a vocabulary of `ai-tokenizer`, an ordinary dependency. */
export async function loadVocabulary(name: VocabularyName): Promise<CountTokens> {
  const [{ Tokenizer }, encoding] = await Promise.all([import("ai-tokenizer"), importers[name]()]);
  const tokenizer = new Tokenizer(encoding, undefined, mergeCacheEntries);
  // "all" reads `<|endoftext|>` as the text it is. Without it a user who types that makes the tokenizer throw.
  return (slice) => tokenizer.encode(slice, "all").length;
}
