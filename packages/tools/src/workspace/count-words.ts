import { askedTime, isTimeWord, type AskedTime } from "./asked-times.ts";
import type { KnownTexts, TextWords } from "./known-texts.ts";
import type { RankablePassage } from "./rank-passages.ts";
import { stopWords } from "./stop-words.ts";

/** Limits the words of a question. Of a longer one the longest count, because these are names rather than articles. */
const mostTerms = 64;

/** Holds the words of a question, each with its number. */
export interface Question {
  readonly words: ReadonlyMap<string, number>;
  /** Holds the stems, and each identifier in one piece behind a `=`. */
  readonly stems: ReadonlyMap<string, number>;
  /** Lists the stems that say something about the topic. */
  readonly topics: readonly number[];
  readonly pairs: ReadonlyMap<string, number>;
  /** Lists the pairs of words of which none is a stop word. */
  readonly topicPairs: readonly number[];
  readonly time: AskedTime;
}

export function readQuestion(asked: TextWords): Question {
  const kept = new Set(
    [...new Set([...asked.words, ...asked.names])]
      .toSorted((one, other) => other.length - one.length)
      .slice(0, mostTerms),
  );
  const words = new Numbers();
  const stems = new Numbers();
  const pairs = new Numbers();
  const topics = new Set<number>();
  const topicPairs = new Set<number>();
  for (const [index, word] of asked.words.entries()) {
    const before = asked.words[index - 1];
    if (!kept.has(word)) continue;
    words.of(word);
    const stem = stems.of(asked.stems[index] ?? word);
    if (!stopWords.has(word)) topics.add(stem);
    if (before === undefined || !kept.has(before)) continue;
    const pair = pairs.of(`${before} ${word}`);
    if (!stopWords.has(before) && !stopWords.has(word)) topicPairs.add(pair);
  }
  for (const name of asked.names) {
    if (!kept.has(name)) continue;
    words.of(name);
    topics.add(stems.of(`=${name}`));
  }
  return {
    words: words.known,
    stems: stems.known,
    // A question of stop words alone has no other topic.
    topics: topics.size > 0 ? [...topics] : [...stems.known.values()],
    pairs: pairs.known,
    topicPairs: [...topicPairs],
    time: askedTime(asked),
  };
}

class Numbers {
  readonly known: Map<string, number> = new Map();

  of(key: string): number {
    const known = this.known.get(key);
    if (known !== undefined) return known;
    this.known.set(key, this.known.size);
    return this.known.size - 1;
  }
}

/** Counts words of a question, by their numbers, with the number of all words. */
export interface Counts {
  readonly counts: Float64Array;
  length: number;
}

/** Holds the counts of one piece of a passage, such as a message. */
export interface CountedPiece extends Counts {
  /** Holds the name before the first colon, as in `Ann: hello`; empty without one. */
  readonly speaker: string;
}

export interface CountedPassage {
  readonly words: Counts;
  readonly stems: Counts;
  /** Holds the numbers of the pairs that the passage has. */
  readonly pairs: ReadonlySet<number>;
  /** Counts the words that state a time, if the question asks for one. */
  readonly timeWords: number;
  readonly pieces: readonly CountedPiece[];
}

const speakerName = /^(\p{L}[\p{L} .'-]{0,40}):\s/u;

export function countPassage(passage: RankablePassage, question: Question, known: KnownTexts): CountedPassage {
  const words: Counts = { counts: new Float64Array(question.words.size), length: 0 };
  const stems: Counts = { counts: new Float64Array(question.stems.size), length: 0 };
  const pairs = new Set<number>();
  let timeWords = 0;
  const names = new Set<string>();
  const pieces = (passage.pieces ?? [{ text: passage.text, weight: 1 }]).map(({ text, weight }) => {
    const found = known.wordsOf(text);
    const piece = countPiece(found, weight, question, { words: words.counts, pairs });
    for (const [stem, count] of piece.counts.entries()) add(stems.counts, stem, count);
    for (const name of found.names) names.add(name);
    stems.length += piece.length;
    if (question.time.isAboutTime) timeWords += found.words.filter(isTimeWord).length;
    return { ...piece, speaker: speakerName.exec(text.slice(0, 50))?.[1]?.toLowerCase() ?? "" };
  });
  for (const name of names) {
    add(words.counts, question.words.get(name), 1);
    add(stems.counts, question.stems.get(`=${name}`), 1);
  }
  stems.length += names.size;
  words.length = stems.length;
  return { words, stems, pairs, timeWords, pieces };
}

/** A word has a stem of the question if it is a word of it, so that most words are looked up once. */
function countPiece(
  { words, stems }: TextWords,
  weight: number,
  question: Question,
  passage: { readonly words: Float64Array; readonly pairs: Set<number> },
): Counts {
  const counts = new Float64Array(question.stems.size);
  let before = "";
  for (const [index, stem] of stems.entries()) {
    const number = question.stems.get(stem);
    const word = number === undefined ? "" : (words[index] ?? "");
    if (number !== undefined) {
      add(counts, number, weight);
      add(passage.words, question.words.get(word), weight);
      const pair = before === "" ? undefined : question.pairs.get(`${before} ${word}`);
      if (pair !== undefined) passage.pairs.add(pair);
    }
    before = word;
  }
  return { counts, length: words.length };
}

export function add(counts: Float64Array, number: number | undefined, count: number): void {
  if (number !== undefined) counts[number] = (counts[number] ?? 0) + count;
}
