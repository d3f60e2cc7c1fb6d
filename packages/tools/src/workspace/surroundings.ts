import { bm25 } from "./bm25.ts";
import type { Counts, CountedPassage, Question } from "./count-words.ts";
import type { KnownTexts } from "./known-texts.ts";
import type { RankablePassage } from "./rank-passages.ts";

/** A neighbor counts as if it had at most so many words, so that a long one does not drown the passage. */
const mostNeighborWords = 100;

/** Yields what the surroundings of each passage say about the topics of the question. */
export function* surroundings(
  passages: readonly RankablePassage[],
  counted: readonly CountedPassage[],
  question: Question,
  known: KnownTexts,
): Generator<readonly ["window" | "before" | "session" | "message", Float64Array]> {
  const { named, topics } = speakersOf(counted, question, known);
  const [before, after] = neighborsOf(passages);
  const stems = counted.map((each) => each.stems);
  const windows = stems.map((own, index) =>
    joined([own, ...[before[index], after[index]].flatMap((at) => stems[at ?? -1] ?? [])]),
  );
  yield ["window", bm25(windows, topics, "short")];
  const own = bm25(stems, topics, "short");
  yield ["before", Float64Array.from(before, (at) => own[at] ?? 0)];
  yield ["session", sessionScores(passages, stems, topics)];
  const messages = counted.flatMap(({ pieces }, index) => pieces.map((piece) => ({ ...piece, index })));
  const best = new Float64Array(counted.length);
  for (const [at, score] of bm25(messages, topics, "short").entries()) {
    const message = messages[at];
    if (message === undefined || (named.size > 0 && !named.has(message.speaker))) continue;
    best[message.index] = Math.max(best[message.index] ?? 0, score);
  }
  yield ["message", best];
}

/**
 * Finds the speakers that the question names. Their names then say nothing about the topic, because they stand before
 * each of their messages.
 */
function speakersOf(
  counted: readonly CountedPassage[],
  { words, stems, topics }: Question,
  known: KnownTexts,
): { readonly named: ReadonlySet<string>; readonly topics: readonly number[] } {
  const speakers = new Set(counted.flatMap(({ pieces }) => pieces.map(({ speaker }) => speaker)));
  const asked = [...words.keys()].filter((word) => speakers.has(known.wordOf(word)));
  const named = new Set(asked.map((word) => known.wordOf(word)));
  const names = new Set(asked.map((word) => stems.get(known.stemOf(word))));
  return { named, topics: topics.filter((topic) => !names.has(topic)) };
}

/** Returns the index of the passage before and after each passage; -1 where there is none. */
function neighborsOf(passages: readonly RankablePassage[]): readonly [Int32Array, Int32Array] {
  const before = new Int32Array(passages.length).fill(-1);
  const after = new Int32Array(passages.length).fill(-1);
  const starts = new Map(passages.map(({ place }, index) => [place && `${place.first} ${place.within}`, index]));
  for (const [index, { place }] of passages.entries()) {
    const next = place === undefined ? undefined : starts.get(`${place.last + 1} ${place.within}`);
    if (next === undefined) continue;
    after[index] = next;
    before[next] = index;
  }
  return [before, after];
}

function joined([own, ...neighbors]: readonly Counts[]): Counts {
  const counts = Float64Array.from(own?.counts ?? []);
  let length = own?.length ?? 0;
  for (const neighbor of neighbors) {
    const share = Math.min(1, mostNeighborWords / Math.max(1, neighbor.length));
    for (let term = 0; term < counts.length; term++)
      counts[term] = (counts[term] ?? 0) + (neighbor.counts[term] ?? 0) * share;
    length += neighbor.length * share;
  }
  return { counts, length };
}

function sessionScores(
  passages: readonly RankablePassage[],
  stems: readonly Counts[],
  topics: readonly number[],
): Float64Array {
  const sessions = new Map<string, { readonly counts: Float64Array; length: number; readonly at: number }>();
  const sessionOf = passages.map(({ place }, index) => {
    const own = stems[index];
    // A passage that stands by itself is a session of its own.
    const name = place?.within ?? `${index}`;
    const session = sessions.get(name) ?? {
      counts: new Float64Array(own?.counts.length ?? 0),
      length: 0,
      at: sessions.size,
    };
    sessions.set(name, session);
    for (const [term, count] of (own?.counts ?? []).entries())
      session.counts[term] = (session.counts[term] ?? 0) + count;
    session.length += own?.length ?? 0;
    return session.at;
  });
  const scores = bm25([...sessions.values()], topics, "short");
  return Float64Array.from(sessionOf, (at) => scores[at] ?? 0);
}
