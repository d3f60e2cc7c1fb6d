import { askedTime, isTimeWord, type AskedTime } from "./asked-times.ts";
import type { KnownTexts, TextWords } from "./known-texts.ts";
import type { RankablePassage } from "./rank-passages.ts";
import { stopWords } from "./stop-words.ts";

/** Limits the words of a question. Of a longer one the longest count, because these are names rather than articles. */
const mostTerms = 64;

/** Holds the words of a question, each with its place in the counts. */
export interface Question {
  readonly words: ReadonlyMap<number, number>;
  readonly stems: ReadonlyMap<number, number>;
  /** Holds the identifiers in one piece, with their places behind those of the stems. */
  readonly names: ReadonlyMap<number, number>;
  /** Lists the stems and names that say something about the topic. */
  readonly topics: readonly number[];
  /** Holds pairs of words that follow each other: the words behind each word. */
  readonly pairs: ReadonlyMap<number, ReadonlyMap<number, number>>;
  readonly pairCount: number;
  /** Lists the pairs of words of which none is a stop word. */
  readonly topicPairs: readonly number[];
  readonly time: AskedTime;
}

export function readQuestion(query: string, known: KnownTexts): Question {
  const asked = known.readWords(query);
  const kept = new Set(
    [...new Set([...asked.words, ...asked.names])]
      .toSorted((one, other) => known.wordOf(other).length - known.wordOf(one).length)
      .slice(0, mostTerms),
  );
  const isStop = (word: number): boolean => stopWords.has(known.wordOf(word));
  const [words, stems, names] = [new Places(), new Places(), new Map<number, number>()];
  const pairs = new Map<number, Map<number, number>>();
  const topics = new Set<number>();
  const topicPairs: number[] = [];
  let pairCount = 0;
  for (const [index, word] of asked.words.entries()) {
    if (!kept.has(word)) continue;
    words.of(word);
    const stem = stems.of(known.stemOf(word));
    if (!isStop(word)) topics.add(stem);
    const before = asked.words[index - 1];
    if (before === undefined || !kept.has(before)) continue;
    const followers = pairs.get(before) ?? new Map<number, number>();
    pairs.set(before, followers);
    if (followers.has(word)) continue;
    if (!isStop(before) && !isStop(word)) topicPairs.push(pairCount);
    followers.set(word, pairCount++);
  }
  for (const name of asked.names) {
    if (!kept.has(name)) continue;
    words.of(name);
    names.set(name, stems.known.size + names.size);
    topics.add(names.get(name) ?? 0);
  }
  return {
    words: words.known,
    stems: stems.known,
    names,
    // A question of stop words alone has no other topic.
    topics: topics.size > 0 ? [...topics] : [...stems.known.values()],
    pairs,
    pairCount,
    topicPairs,
    time: askedTime(Array.from(asked.words, (word) => known.wordOf(word))),
  };
}

class Places {
  readonly known: Map<number, number> = new Map();

  of(word: number): number {
    const known = this.known.get(word);
    if (known !== undefined) return known;
    this.known.set(word, this.known.size);
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
  const stems: Counts = { counts: new Float64Array(question.stems.size + question.names.size), length: 0 };
  const pairs = new Set<number>();
  let timeWords = 0;
  const names = new Set<number>();
  const pieces = (passage.pieces ?? [{ text: passage.text, weight: 1 }]).map(({ text, weight }) => {
    const found = known.wordsOf(text);
    const piece = countPiece(found, weight, question, { words: words.counts, pairs, known });
    for (let stem = 0; stem < piece.counts.length; stem++) add(stems.counts, stem, piece.counts[stem] ?? 0);
    for (const name of found.names) names.add(name);
    stems.length += piece.length;
    if (question.time.isAboutTime) for (const word of found.words) if (isTimeWord(known.wordOf(word))) timeWords++;
    return { ...piece, speaker: speakerName.exec(text.slice(0, 50))?.[1]?.toLowerCase() ?? "" };
  });
  for (const name of names) {
    add(words.counts, question.words.get(name), 1);
    add(stems.counts, question.names.get(name), 1);
  }
  stems.length += names.size;
  words.length = stems.length;
  return { words, stems, pairs, timeWords, pieces };
}

/** A word has a stem of the question if it is a word of it, so that most words are looked up once. */
function countPiece(
  { words }: TextWords,
  weight: number,
  question: Question,
  passage: { readonly words: Float64Array; readonly pairs: Set<number>; readonly known: KnownTexts },
): Counts {
  const counts = new Float64Array(question.stems.size + question.names.size);
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? 0;
    const stem = question.stems.get(passage.known.stemOf(word));
    if (stem === undefined) continue;
    add(counts, stem, weight);
    add(passage.words, question.words.get(word), weight);
    const pair = index === 0 ? undefined : question.pairs.get(words[index - 1] ?? 0)?.get(word);
    if (pair !== undefined) passage.pairs.add(pair);
  }
  return { counts, length: words.length };
}

export function add(counts: Float64Array, place: number | undefined, count: number): void {
  if (place !== undefined) counts[place] = (counts[place] ?? 0) + count;
}
