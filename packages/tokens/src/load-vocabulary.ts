import { createBytePairCounter } from "./byte-pair-counter.ts";
import type { CountTokens } from "./text-counter.ts";

/** The vocabularies that can be loaded. 0.4 to 1.4 MB each, so none is loaded until it is needed. */
export type VocabularyName = "claude" | "o200k_base" | "cl100k_base";

/** Gives a counter for one slice of text; rejects when the vocabulary cannot be loaded. */
export type LoadVocabulary = (name: VocabularyName) => Promise<CountTokens>;

/** Part of every cache and calibration key: counts of another tokenizer or version are not comparable. */
export const tokenizerVersion = "throughline@1";

interface VocabularySource {
  /** By the name of a subpath, so that a bundler can leave the vocabularies out of its bundle. */
  readonly load: () => Promise<{ readonly packedVocabulary: string }>;
  /** Cuts a text into pieces; no token reaches over the end of one. */
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

/** Loads each vocabulary once. A failed load is not kept: the next call loads again. */
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
 * Loads a packed vocabulary of this package, once per process: unpacking one takes 50 to 250 ms. Special tokens count as
 * the text they look like.
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
