import { createBytePairCounter } from "./byte-pair-counter.ts";
import type { CountTokens } from "./text-counter.ts";

/** Each vocabulary takes 0.4 to 1.4 MB, so the package loads one only when a counter needs it. */
export type VocabularyName = "claude" | "o200k_base" | "cl100k_base";

/** Returns a counter for one slice of text. The promise rejects when the vocabulary cannot be loaded. */
export type LoadVocabulary = (name: VocabularyName) => Promise<CountTokens>;

/** Every cache and calibration key includes this version, because counts of different tokenizers are not comparable. */
export const tokenizerVersion = "throughline@1";

interface VocabularySource {
  /** Imports a subpath by name, so that a bundler can leave the vocabularies out of its bundle. */
  readonly load: () => Promise<{ readonly packedVocabulary: string }>;
  /** Cuts a text into pieces. No token crosses the end of a piece. */
  readonly splitPattern: RegExp;
}

const sources: Readonly<Record<VocabularyName, VocabularySource>> = {
  claude: {
    load: () => import("@throughline/tokens/vocabulary/claude"),
    splitPattern: /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu,
  },
  o200k_base: {
    load: () => import("@throughline/tokens/vocabulary/o200k-base"),
    splitPattern:
      /[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu,
  },
  cl100k_base: {
    load: () => import("@throughline/tokens/vocabulary/cl100k-base"),
    splitPattern:
      /(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu,
  },
};

/** Loads each vocabulary once. A failed load is not cached, so the next call tries again. */
export function loadOnce(load: LoadVocabulary): LoadVocabulary {
  const loaded = new Map<VocabularyName, Promise<CountTokens>>();
  return (name) => {
    const known = loaded.get(name);
    if (known !== undefined) return known;
    const loading = load(name);
    loaded.set(name, loading);
    loading.catch(() => loaded.delete(name));
    return loading;
  };
}

/**
 * Loads a packed vocabulary of this package once per process, because unpacking takes 50 to 250 ms. Special tokens
 * count as ordinary text.
 */
export const loadVocabulary: LoadVocabulary = loadOnce(async (name) => {
  const { load, splitPattern } = sources[name];
  const { packedVocabulary } = await load();
  return createBytePairCounter(await unpack(packedVocabulary), splitPattern);
});

async function unpack(base64: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
