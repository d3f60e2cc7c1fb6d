import { runInSlices, runSteps, type Steps } from "@throughline/core/internal";
import { datePoints } from "./asked-times.ts";
import { bm25, rarity } from "./bm25.ts";
import { countPassages, readQuestion, type Counted, type Question } from "./count-words.ts";
import { KnownTexts } from "./known-texts.ts";
import type { RankablePassage } from "./rankable-passage.ts";
import { surroundings } from "./surroundings.ts";

/** Holds a passage with its score. */
export interface RankedPassage<Passage> {
  /** Holds the passage as the caller passed it. */
  readonly passage: Passage;
  /** States how well the passage answers. Higher is better; scores are comparable within one ranking only. */
  readonly score: number;
}

/** Only the beginning of a long question is used. */
const mostQueryLength = 2000;

/**
 * These numbers of words divide short passages, as of chats between people, from long ones, as of answers of a model. The
 * median of the passages decides.
 */
const shortWords = 100;
const longWords = 300;

/**
 * States what each feature weighs among long and among short passages. Between them the weight changes evenly. Each
 * feature is divided by its highest value, and pairs by that of the words, because a pair of frequent words is worth
 * little. The weights are those with which most evidence was among the first five places, on LoCoMo
 * (short) and on ten chats of BEAM (long). docs/decisions/2026-11-30-search-ranking.md has what each one brings.
 */
const weights = {
  /** An exact word distinguishes long answers. In short turns people use other forms of it. */
  words: { long: 1, short: 0 },
  stems: { long: 1, short: 1.5 },
  /** Two words in the order of the question distinguish `agent-session.ts` from a text about sessions of agents. */
  pairs: { long: 0.5, short: 1 },
  topicPairs: { long: 1, short: 1 },
  /** A short turn rarely names its topic, but the turns around it do. Around a long answer stand other topics. */
  window: { long: 0, short: 2.5 },
  session: { long: 0.3, short: 1 },
  /** The best single message, of the person that the question names. */
  message: { long: 0, short: 1 },
  /** Among many records, what the named person said stands out. */
  speaker: { long: 0, short: 1.5 },
  time: { long: 2, short: 2 },
  date: { long: 4, short: 4 },
} as const;
type Feature = keyof typeof weights;

/**
 * Ranks the passages that share a word, a form of it or a name with a question, best first. Passages with equal scores
 * keep their order. Identifiers and paths count in their parts, and once more as a whole.
 */
export function rankPassages<Passage extends RankablePassage>(
  passages: readonly Passage[],
  query: string,
  known: KnownTexts = new KnownTexts(),
): readonly RankedPassage<Passage>[] {
  return runSteps(ranking(passages, query, known));
}

/** Ranks many passages, and lets other work run in between. */
export function rankInSlices<Passage extends RankablePassage>(
  passages: readonly Passage[],
  query: string,
  known: KnownTexts,
): Promise<readonly RankedPassage<Passage>[]> {
  return runInSlices(ranking(passages, query, known));
}

function* ranking<Passage extends RankablePassage>(
  passages: readonly Passage[],
  query: string,
  known: KnownTexts,
): Steps<readonly RankedPassage<Passage>[]> {
  const question = readQuestion(query.slice(0, mostQueryLength), known);
  const counted = yield* countPassages(passages, question, known);
  const features = yield* featuresOf(passages, counted, question, known);
  const shortness = shortnessOf(counted);
  const scores = new Float64Array(passages.length);
  let most = 0;
  const highestOf = (name: Feature): number => features.get(name)?.reduce((one, other) => Math.max(one, other), 0) ?? 0;
  for (const [name, values] of features) {
    const { long, short } = weights[name];
    const weight = long + (short - long) * shortness;
    const highest = highestOf(name === "pairs" || name === "topicPairs" ? "words" : name);
    if (weight === 0 || highest === 0) continue;
    most += weight;
    for (let row = 0; row < scores.length; row++)
      scores[row] = (scores[row] ?? 0) + (weight * (values[row] ?? 0)) / highest;
  }
  const matching = features.get("stems");
  return passages
    .map((passage, index) => ({ passage, score: (scores[index] ?? 0) / Math.max(1, most), index }))
    .filter(({ index }) => (matching?.[index] ?? 0) > 0)
    .toSorted((one, other) => other.score - one.score)
    .map(({ passage, score }) => ({ passage, score }));
}

function shortnessOf({ words }: Counted): number {
  const lengths = words.lengths.toSorted();
  const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
  return Math.min(1, Math.max(0, (longWords - median) / (longWords - shortWords)));
}

/** More words of time do not make a better answer to the question when something was. */
const mostTimeWords = 2;

function* featuresOf(
  passages: readonly RankablePassage[],
  counted: Counted,
  question: Question,
  known: KnownTexts,
): Steps<ReadonlyMap<Feature, Float64Array>> {
  const { isAboutTime } = question.time;
  const features = new Map<Feature, Float64Array>();
  features.set("words", bm25(counted.words, [...question.words.values()], "long"));
  yield;
  features.set("stems", bm25(counted.stems, [...question.stems.values(), ...question.names.values()], "long"));
  yield;
  const pairs = Array.from({ length: question.pairCount }, (_, pair) => pair);
  features.set("pairs", pairPoints(counted, pairs));
  features.set("topicPairs", pairPoints(counted, question.topicPairs));
  yield;
  // A passage without a place has no surroundings.
  if (passages.some(({ place }) => place !== undefined))
    for (const [name, values] of surroundings(passages, counted, question, known)) {
      features.set(name, values);
      yield;
    }
  features.set(
    "time",
    counted.timeWords.map((count) => (isAboutTime ? Math.min(count, mostTimeWords) : 0)),
  );
  features.set(
    "date",
    Float64Array.from(passages, ({ place }) => datePoints(question.time, place?.tsMs ?? null)),
  );
  return features;
}

function pairPoints({ pairs: table }: Counted, pairs: readonly number[]): Float64Array {
  const points = new Float64Array(table.lengths.length);
  for (const pair of pairs) {
    const weight = rarity(table, pair);
    for (let row = 0; row < points.length; row++)
      if (table.at(row, pair) > 0) points[row] = (points[row] ?? 0) + weight;
  }
  return points;
}
