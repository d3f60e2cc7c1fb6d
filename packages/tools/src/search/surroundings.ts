import { bm25 } from "./bm25.ts";
import { CountTable } from "./count-table.ts";
import type { Counted, Question } from "./count-words.ts";
import type { KnownTexts } from "./known-texts.ts";
import type { RankablePassage } from "./rankable-passage.ts";

/** A neighbor counts as if it had at most this number of words, so that a long one does not drown the passage. */
const mostNeighborWords = 100;

/** Yields what the surroundings of each passage say about the topics of the question. */
export function* surroundings(
  passages: readonly RankablePassage[],
  counted: Counted,
  question: Question,
  known: KnownTexts,
): Generator<readonly ["window" | "session" | "message" | "speaker", Float64Array]> {
  const { named, topics } = speakersOf(counted, question, known);
  const terms = question.stems.size + question.names.size;
  yield ["window", bm25(windowsOf(counted, terms, neighborsOf(passages)), topics, "short")];
  yield ["session", sessionScores(passages, counted, terms, topics)];
  const best = new Float64Array(passages.length);
  const isNamed = new Float64Array(passages.length);
  for (const [piece, score] of bm25(counted.pieces, topics, "short").entries()) {
    if (named.size > 0 && !named.has(counted.speakers[piece] ?? "")) continue;
    const row = counted.passageOf[piece] ?? 0;
    best[row] = Math.max(best[row] ?? 0, score);
    isNamed[row] = 1;
  }
  yield ["message", best];
  if (named.size > 0) yield ["speaker", isNamed];
}

/**
 * Finds the speakers that the question names. Their names then say nothing about the topic, because they stand before
 * each of their messages.
 */
function speakersOf(
  counted: Counted,
  { words, stems, topics }: Question,
  known: KnownTexts,
): { readonly named: ReadonlySet<string>; readonly topics: readonly number[] } {
  const speakers = new Set(counted.speakers);
  const asked = [...words.keys()].filter((word) => speakers.has(known.wordOf(word)));
  const named = new Set(asked.map((word) => known.wordOf(word)));
  const names = new Set(asked.map((word) => stems.get(known.stemOf(word))));
  return { named, topics: topics.filter((topic) => !names.has(topic)) };
}

/** Returns the rows of the passages before and after each passage; -1 marks the first and the last of a session. */
function neighborsOf(passages: readonly RankablePassage[]): readonly [Int32Array, Int32Array] {
  const before = new Int32Array(passages.length).fill(-1);
  const after = new Int32Array(passages.length).fill(-1);
  const starts = new Map<string, Map<number, number>>();
  for (const [row, { place }] of passages.entries()) {
    if (place === undefined) continue;
    const rows = starts.get(place.within) ?? new Map<number, number>();
    starts.set(place.within, rows.set(place.first, row));
  }
  for (const [row, { place }] of passages.entries()) {
    const next = place === undefined ? undefined : starts.get(place.within)?.get(place.last + 1);
    if (next === undefined) continue;
    after[row] = next;
    before[next] = row;
  }
  return [before, after];
}

function windowsOf({ stems }: Counted, terms: number, neighbors: readonly Int32Array[]): CountTable {
  const rows = stems.lengths.length;
  const windows = new CountTable(rows, terms);
  for (let row = 0; row < rows; row++) {
    windows.addRow(row, stems, row, 1);
    for (const side of neighbors) {
      const neighbor = side[row] ?? -1;
      if (neighbor < 0) continue;
      const share = Math.min(1, mostNeighborWords / Math.max(1, stems.lengths[neighbor] ?? 0));
      windows.addRow(row, stems, neighbor, share);
    }
  }
  return windows;
}

function sessionScores(
  passages: readonly RankablePassage[],
  { stems }: Counted,
  terms: number,
  topics: readonly number[],
): Float64Array {
  const sessions = new Map<string, number>();
  const sessionOf = passages.map(({ place }, row) => {
    // A passage that stands by itself is a session of its own.
    const name = place?.within ?? `${row}`;
    const session = sessions.get(name) ?? sessions.size;
    sessions.set(name, session);
    return session;
  });
  const table = new CountTable(sessions.size, terms);
  for (const [row, session] of sessionOf.entries()) table.addRow(session, stems, row, 1);
  const scores = bm25(table, topics, "short");
  return Float64Array.from(sessionOf, (session) => scores[session] ?? 0);
}
