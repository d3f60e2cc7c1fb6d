import { searchIndexText } from "@throughline/core/internal";

/** Holds a text that can be ranked. */
export interface RankablePassage {
  /** Holds the whole text of the passage. */
  readonly text: string;
  /** Holds the pieces of the passage when they have different weights. @default the whole text, with weight 1 */
  readonly pieces?: readonly { readonly text: string; readonly weight: number }[];
}

/** Holds a passage with its score. */
export interface RankedPassage<Passage> {
  /** Holds the passage as the caller passed it. */
  readonly passage: Passage;
  /** States how well the passage answers. Higher is better; scores are comparable within one ranking only. */
  readonly score: number;
}

/** Only the beginning of a long question is used, and only its rarest words. */
const mostQueryLength = 2000;
const mostQueryWords = 64;

/**
 * These are the usual constants of BM25. `saturation` limits the effect of repeated words, and `lengthWeight` reduces
 * the score of long passages.
 */
const saturation = 1.2;
const lengthWeight = 0.75;

/** Adds this share of a pair's weight when two words follow each other as in the question. */
const pairWeight = 0.5;

/**
 * Ranks the passages that contain words of a question by BM25, best first. Rare words count more than common ones, and
 * a passage need not contain all of them. Identifiers and paths count in their parts, and once more as a whole. Words
 * in the order of the question count more, which distinguishes `agent-session.ts` from a text about sessions of agents.
 * Passages with equal scores keep their order.
 */
export function rankPassages<Passage extends RankablePassage>(
  passages: readonly Passage[],
  query: string,
): readonly RankedPassage<Passage>[] {
  const question = readQuestion(query.slice(0, mostQueryLength));
  const counted = passages.map((passage) => countWords(passage, question));
  const averageLength = counted.reduce((sum, { length }) => sum + length, 0) / Math.max(1, counted.length);
  const weights = new Map(
    [...weigh(counted.map(({ counts }) => counts))]
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, mostQueryWords),
  );
  const pairWeights = weigh(counted.map(({ pairs }) => pairs));
  return counted
    .map(({ passage, counts, pairs, length }) => {
      const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / Math.max(1, averageLength));
      let score = 0;
      for (const [word, count] of counts)
        score += ((weights.get(word) ?? 0) * count * (saturation + 1)) / (count + norm);
      for (const pair of pairs.keys()) score += pairWeight * (pairWeights.get(pair) ?? 0);
      return { passage, score };
    })
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score);
}

interface Question {
  readonly words: ReadonlySet<string>;
  /** Maps each word to the words that follow it in the question. */
  readonly followers: ReadonlyMap<string, ReadonlySet<string>>;
}

function readQuestion(query: string): Question {
  const { words, names } = searchIndexText(query);
  const inOrder = split(words);
  const followers = new Map<string, Set<string>>();
  for (const [index, word] of inOrder.slice(1).entries()) {
    const before = inOrder[index] ?? "";
    const known = followers.get(before) ?? new Set();
    followers.set(before, known.add(word));
  }
  return { words: new Set([...inOrder, ...split(names)]), followers };
}

interface CountedPassage<Passage> {
  readonly passage: Passage;
  /** Counts only the words of the question. */
  readonly counts: ReadonlyMap<string, number>;
  /** Counts the word pairs that also follow each other in the question. */
  readonly pairs: ReadonlyMap<string, number>;
  readonly length: number;
}

function countWords<Passage extends RankablePassage>(
  passage: Passage,
  { words: asked, followers }: Question,
): CountedPassage<Passage> {
  const counts = new Map<string, number>();
  const pairs = new Map<string, number>();
  let length = 0;
  for (const { text, weight } of passage.pieces ?? [{ text: passage.text, weight: 1 }]) {
    const { words, names } = searchIndexText(text);
    const inOrder = split(words);
    const whole = split(names);
    length += inOrder.length + whole.length;
    let before = "";
    for (const word of inOrder) {
      if (asked.has(word)) {
        add(counts, word, weight);
        if (followers.get(before)?.has(word) === true) add(pairs, `${before} ${word}`, weight);
      }
      before = word;
    }
    for (const name of whole) if (asked.has(name)) add(counts, name, weight);
  }
  return { passage, counts, pairs, length };
}

function add(counts: Map<string, number>, key: string, weight: number): void {
  counts.set(key, (counts.get(key) ?? 0) + weight);
}

/** A key that fewer passages contain distinguishes them better and gets a higher weight. */
function weigh(held: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const holders = new Map<string, number>();
  for (const each of held) for (const key of each.keys()) add(holders, key, 1);
  return new Map(
    [...holders].map(([key, count]) => [key, Math.log(1 + (held.length - count + 0.5) / (count + 0.5))] as const),
  );
}

function split(words: string): readonly string[] {
  return words === "" ? [] : words.split(" ");
}
