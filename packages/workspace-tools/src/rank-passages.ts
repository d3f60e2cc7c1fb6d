import { searchIndexText } from "@throughline/core/store-search";

/** A passage and how well it answers. */
export interface RankedPassage<Passage> {
  readonly passage: Passage;
  /** Higher is better; to be compared within one ranking only. */
  readonly score: number;
}

/** Of a longer question only the beginning is looked at, and of its words only the rarest. */
const mostQueryLength = 2000;
const mostQueryWords = 64;

/** The usual constants of BM25: how soon more of a word stops counting, and how much length is held against a passage. */
const saturation = 1.2;
const lengthWeight = 0.75;

/**
 * Passages that have words in common with a question, best first, by BM25: rare words count more than common ones, and a
 * passage need not hold them all. Identifiers and paths count in their parts, and once more as a whole.
 */
export function rankPassages<Passage extends { readonly text: string }>(
  passages: readonly Passage[],
  query: string,
): readonly RankedPassage<Passage>[] {
  const asked = new Set(wordsOf(query.slice(0, mostQueryLength)));
  const counted = passages.map((passage) => countWords(passage, asked));
  const averageLength = counted.reduce((sum, { length }) => sum + length, 0) / Math.max(1, counted.length);
  const weights = weigh(asked, counted);
  return counted
    .map(({ passage, counts, length }) => {
      const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / Math.max(1, averageLength));
      let score = 0;
      for (const [word, count] of counts)
        score += ((weights.get(word) ?? 0) * count * (saturation + 1)) / (count + norm);
      return { passage, score };
    })
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score);
}

interface CountedPassage<Passage> {
  readonly passage: Passage;
  /** Of the asked words only. */
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

function countWords<Passage extends { readonly text: string }>(
  passage: Passage,
  asked: ReadonlySet<string>,
): CountedPassage<Passage> {
  const words = wordsOf(passage.text);
  const counts = new Map<string, number>();
  for (const word of words) if (asked.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { passage, counts, length: words.length };
}

function weigh(asked: ReadonlySet<string>, counted: readonly CountedPassage<unknown>[]): ReadonlyMap<string, number> {
  const weights = [...asked].map((word) => {
    const holders = counted.filter(({ counts }) => counts.has(word)).length;
    return [word, Math.log(1 + (counted.length - holders + 0.5) / (holders + 0.5))] as const;
  });
  return new Map(weights.toSorted(([, one], [, other]) => other - one).slice(0, mostQueryWords));
}

function wordsOf(text: string): readonly string[] {
  const { words, names } = searchIndexText(text);
  return [...words.split(" "), ...names.split(" ")].filter((word) => word !== "");
}
