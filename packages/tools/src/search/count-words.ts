import type { Steps } from "@throughline/core/internal";
import { askedTime, type AskedTime } from "./asked-times.ts";
import { CountTable } from "./count-table.ts";
import type { KnownTexts, TextWords } from "./known-texts.ts";
import type { RankablePassage } from "./rankable-passage.ts";
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
  /** Lists the pairs without a stop word. */
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

/** Counts the passages, and the pieces of them, by the words of a question. */
export interface Counted {
  readonly words: CountTable;
  readonly stems: CountTable;
  /** Has a row for each piece, such as a message. */
  readonly pieces: CountTable;
  /** Holds the row of the passage that each piece is of. */
  readonly passageOf: Int32Array;
  /** Holds the speaker of each piece. */
  readonly speakers: readonly string[];
  /** States which pairs of words a passage has: a row for each passage, with 1 for each pair. */
  readonly pairs: CountTable;
  /** Counts the words of each passage that state a time. */
  readonly timeWords: Float64Array;
}

/** Counts all passages, and pauses after each one. */
export function* countPassages(
  passages: readonly RankablePassage[],
  question: Question,
  known: KnownTexts,
): Steps<Counted> {
  const pieceCount = passages.reduce((sum, { pieces }) => sum + (pieces?.length ?? 1), 0);
  const stemCount = question.stems.size + question.names.size;
  const speakers: string[] = [];
  const counted = {
    words: new CountTable(passages.length, question.words.size),
    stems: new CountTable(passages.length, stemCount),
    pieces: new CountTable(pieceCount, stemCount),
    passageOf: new Int32Array(pieceCount),
    speakers,
    pairs: new CountTable(passages.length, question.pairCount),
    timeWords: new Float64Array(passages.length),
  };
  let piece = 0;
  for (const [row, passage] of passages.entries()) {
    const names = new Set<number>();
    for (const { text, weight } of passage.pieces ?? [{ text: passage.text, weight: 1 }]) {
      const found = known.wordsOf(text);
      counted.passageOf[piece] = row;
      speakers.push(found.speaker);
      countPiece(found, { row, piece, weight }, { counted, question, known });
      counted.timeWords[row] = (counted.timeWords[row] ?? 0) + found.timeWords;
      for (const name of found.names) names.add(name);
      piece++;
    }
    for (const name of names) {
      counted.words.add(row, question.words.get(name), 1);
      counted.stems.add(row, placeOfName(name, question, known), 1);
    }
    counted.stems.lengthen(row, names.size);
    counted.words.lengthen(row, counted.stems.lengths[row] ?? 0);
    yield;
  }
  return counted;
}

type Wanted = Pick<Question, "stems" | "names">;

/** Returns the place of a word of a text. People write an identifier in lower case too, and then it is a word. */
export function placeOfWord(word: number, { stems, names }: Wanted, known: KnownTexts): number | undefined {
  return stems.get(known.stemOf(word)) ?? names.get(word);
}

/** Returns the place of an identifier of a text, which the question may have in lower case. */
export function placeOfName(name: number, { stems, names }: Wanted, known: KnownTexts): number | undefined {
  return names.get(name) ?? stems.get(known.stemOf(name));
}

interface Counting {
  readonly counted: Counted;
  readonly question: Question;
  readonly known: KnownTexts;
}

/** A word has a stem of the question if it is a word of it, so that most words are looked up once. */
function countPiece(
  { words }: TextWords,
  { row, piece, weight }: { readonly row: number; readonly piece: number; readonly weight: number },
  { counted, question, known }: Counting,
): void {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? 0;
    const stem = placeOfWord(word, question, known);
    if (stem === undefined) continue;
    counted.pieces.add(piece, stem, weight);
    counted.stems.add(row, stem, weight);
    counted.words.add(row, question.words.get(word), weight);
    const pair = index === 0 ? undefined : question.pairs.get(words[index - 1] ?? 0)?.get(word);
    if (pair !== undefined) counted.pairs.set(row, pair, 1);
  }
  counted.pieces.lengthen(piece, words.length);
  counted.stems.lengthen(row, words.length);
}
