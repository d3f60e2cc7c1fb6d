import type { Counts } from "./count-words.ts";

/**
 * `saturation` limits the effect of repeated words, and `lengthWeight` reduces the score of long texts. The usual
 * constants suit whole passages. For texts that are short or joined, lower ones put more evidence among the first five.
 */
const constants = {
  long: { saturation: 1.2, lengthWeight: 0.75 },
  short: { saturation: 0.9, lengthWeight: 0.5 },
} as const;

/** Scores each text by the terms that it has, rare terms more than common ones. */
export function bm25(texts: readonly Counts[], terms: readonly number[], kind: keyof typeof constants): Float64Array {
  const { saturation, lengthWeight } = constants[kind];
  const average = Math.max(1, texts.reduce((sum, { length }) => sum + length, 0) / Math.max(1, texts.length));
  const norms = texts.map(({ length }) => saturation * (1 - lengthWeight + (lengthWeight * length) / average));
  const scores = new Float64Array(texts.length);
  for (const term of terms) {
    let holders = 0;
    for (const { counts } of texts) if ((counts[term] ?? 0) > 0) holders++;
    const weight = rarity(texts.length, holders) * (saturation + 1);
    for (let index = 0; index < texts.length; index++) {
      const count = texts[index]?.counts[term] ?? 0;
      if (count > 0) scores[index] = (scores[index] ?? 0) + (weight * count) / (count + (norms[index] ?? 0));
    }
  }
  return scores;
}

/** Returns the weight of a term: what fewer texts hold distinguishes them better. */
export function rarity(texts: number, holders: number): number {
  return Math.log(1 + (texts - holders + 0.5) / (holders + 0.5));
}
