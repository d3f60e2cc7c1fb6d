/** Compares the meaning of passages, usually with an embedding model. Throughline includes no implementation. */
export interface PassageScorer {
  /** Returns one number for each passage, in the same order. A higher number means closer to the question. */
  score(question: string, passages: readonly string[], signal: AbortSignal): Promise<readonly number[]>;
}

/**
 * A scorer moves a passage by at most this share of the range of the scores by words. Random scores with this weight
 * change nothing by more than half a point on 1,535 questions, and with 0.2 they cost 0.8 points. Right ones win 3.5.
 */
const meaningWeight = 0.1;

/** Limits the passages that a scorer receives and may move: the best by words, then the newest. */
export const mostScored = 50;

/**
 * Orders passages by their scores by words and by meaning. Each kind of score is spread from 0 to 1 over the passages,
 * because scorers have scales of their own.
 */
export function byWordsAndMeaning<Item>(
  items: readonly { readonly item: Item; readonly words: number; readonly meaning: number }[],
): readonly { readonly item: Item; readonly score: number }[] {
  const words = spread(items.map((each) => each.words));
  const meanings = spread(items.map(({ meaning }) => meaning));
  return items
    .map(({ item }, index) => ({ item, score: (words[index] ?? 0) + meaningWeight * (meanings[index] ?? 0) }))
    .toSorted((one, other) => other.score - one.score);
}

function spread(scores: readonly number[]): readonly number[] {
  const least = Math.min(...scores);
  const range = Math.max(...scores) - least;
  return scores.map((score) => (range > 0 ? (score - least) / range : 0));
}
