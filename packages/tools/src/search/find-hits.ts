import type { SearchHit, SessionStore } from "@throughline/core";
import { mostIndexedHits, searchHits, type FoundHits, type HitQuery } from "@throughline/core/internal/node";
import { rankHits } from "./rank-hits.ts";
import { wordsToLookUp } from "./words-to-look-up.ts";

/** Holds the hits of a search, and how they are ordered. */
export interface RankedHits extends FoundHits {
  /** States that the hits are ranked as answers to a question; false: each has all words. */
  readonly isRanked: boolean;
}

/**
 * Returns whether a text asks for exact words: it has `"words that stand together"` or `beginn*`, or no word that an index
 * looks up.
 */
export function isExactSearch(text: string): boolean {
  return text.includes('"') || /\*(?:\s|$)/.test(text) || wordsToLookUp(text).length === 0;
}

/**
 * Searches records as `searchHits`, and ranks them as `memory_search` ranks places. Not all words have to occur. Where
 * `isExactSearch` is true, where every record is to be read, and for calls that write a file, each hit has all words.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong field of the query; the hits throw what the store throws
 */
export function findHits(store: SessionStore, query: HitQuery): RankedHits {
  const { text, file, isScan, limit, signal } = query;
  if (isScan || file !== undefined || isExactSearch(text)) return { ...searchHits(store, query), isRanked: false };
  const asked = { ...query, anyOf: wordsToLookUp(text), limit: mostIndexedHits };
  const { index, hits } = searchHits(store, asked);
  const candidates = index === null ? bestOf(hits) : hits;
  const ranking = { question: text, candidates, storeOf: () => store, signal: () => signal };
  return { index, hits: firstOf(rankHits(ranking), limit), isRanked: true };
}

async function* firstOf(hits: AsyncIterable<SearchHit>, limit: number): AsyncGenerator<SearchHit, void, void> {
  let count = 0;
  for await (const hit of hits) {
    if (count++ >= limit) return;
    yield hit;
  }
}

/** Yields the best of many hits, with the most words and then the newest first. */
export async function* bestOf(hits: AsyncIterable<SearchHit>): AsyncGenerator<SearchHit, void, void> {
  let best: SearchHit[] = [];
  const inOrder = (): SearchHit[] =>
    best
      .toSorted((one, other) => other.score - one.score || (other.tsMs ?? 0) - (one.tsMs ?? 0))
      .slice(0, mostIndexedHits);
  for await (const hit of hits) {
    best.push(hit);
    if (best.length >= 2 * mostIndexedHits) best = inOrder();
  }
  yield* inOrder();
}
