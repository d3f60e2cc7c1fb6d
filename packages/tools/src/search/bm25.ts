import type { CountTable } from "./count-table.ts";

/**
 * `saturation` limits the effect of repeated words, and `lengthWeight` reduces the score of long texts. The usual
 * constants suit whole passages. For texts that are short or joined, lower ones put more evidence among the first five.
 */
const constants = {
  long: { saturation: 1.2, lengthWeight: 0.75 },
  short: { saturation: 0.9, lengthWeight: 0.5 },
} as const;

/** Scores each row by the terms that it has, rare terms more than common ones. */
export function bm25(table: CountTable, terms: readonly number[], kind: keyof typeof constants): Float64Array {
  const { saturation, lengthWeight } = constants[kind];
  const { lengths } = table;
  const average = Math.max(1, lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length));
  const norms = lengths.map((length) => saturation * (1 - lengthWeight + (lengthWeight * length) / average));
  const scores = new Float64Array(lengths.length);
  for (const term of terms) {
    const weight = rarity(table, term) * (saturation + 1);
    for (let row = 0; row < scores.length; row++) {
      const count = table.at(row, term);
      if (count > 0) scores[row] = (scores[row] ?? 0) + (weight * count) / (count + (norms[row] ?? 0));
    }
  }
  return scores;
}

/** Returns the weight of a term: what fewer rows hold distinguishes them better. */
export function rarity(table: CountTable, term: number): number {
  const rows = table.lengths.length;
  let holders = 0;
  for (let row = 0; row < rows; row++) if (table.at(row, term) > 0) holders++;
  return Math.log(1 + (rows - holders + 0.5) / (holders + 0.5));
}
