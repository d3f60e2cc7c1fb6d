import type { SearchHit, SessionRef, SessionStore } from "@throughline/core";
import { isProse, type NearestHit } from "@throughline/core/internal";
import { newestFirst, piecesOf, placeInSession, type Episode, type EpisodePart } from "./episodes.ts";
import { placeOfName, placeOfWord, readQuestion } from "./count-words.ts";
import { KnownTexts } from "./known-texts.ts";
import { nearnessBeside, nearnessOf, placesToMove } from "./meaning-search.ts";
import { byWordsAndMeaning } from "./passage-scorer.ts";
import { rankInSlices, rankPassages, type RankedPassage } from "./rank-passages.ts";
import { RecordsAround } from "./records-around.ts";

/** Sets the hits that are ranked, and the question that they may answer. */
export interface HitRanking {
  /** Sets the question: words, of which not all have to occur. */
  readonly question: string;
  /** Yields the hits of an index for any of the words, the best first. */
  readonly candidates: AsyncIterable<SearchHit>;
  /** Holds texts that are near in meaning, found while the words are searched. @default words alone */
  readonly near?: Promise<readonly NearestHit[]> | undefined;
  /** Returns whether a record may be shown that is near in meaning and has none of the words. @default every record may */
  readonly mayShow?: ((part: EpisodePart) => boolean) | undefined;
  /** Returns the store that holds the session of a hit. */
  readonly storeOf: (ref: SessionRef) => SessionStore;
  /** Returns the signal that aborts the reading. */
  readonly signal: () => AbortSignal;
}

/** The places that meaning may move come before all others. */
const movedScore = 0.1;
/** A hit that no word found shows this much of its record. */
const mostSnippetLength = 300;

/** A hit beside better ones of its exchange keeps at least this share of the score of the exchange. */
const leastShare = 0.5;

/**
 * Ranks hits as `memory_search` ranks places: by the exchanges around them, best first. Hits whose exchange was not read
 * come last, in the order of the index, with the score 0. Tool output and code come behind every hit of a person or a
 * model that has as many words of the question. Texts that are near in meaning move the best places, and one without a
 * hit gets one.
 * @throws {ThroughlineError} ABORTED, and what the candidates and the stores throw
 */
export async function* rankHits({
  question,
  candidates,
  near: meant,
  mayShow,
  storeOf,
  signal,
}: HitRanking): AsyncGenerator<SearchHit, void, void> {
  const around = new RecordsAround({ storeOf, signal });
  const hits: SearchHit[] = [];
  let isWanted = true;
  for await (const hit of candidates) {
    hits.push(hit);
    isWanted &&= await around.add(hit);
  }
  const near = (await meant) ?? [];
  for (const { ref, sessionId, firstSeq } of near) await around.add({ ref, sessionId, seq: firstSeq });
  const known = new KnownTexts();
  const episodes = newestFirst(await around.episodes());
  const passages = episodes.map((episode) => ({
    episode,
    text: episode.text,
    pieces: piecesOf(episode),
    place: placeInSession(episode),
  }));
  const byWords = await rankInSlices(passages, question, known);
  const ranked = near.length === 0 ? byWords : withMeaning(passages, byWords, near);
  const places = new Map<string, Place>();
  for (const { passage, score } of ranked)
    for (const part of passage.episode.parts)
      places.set(`${passage.episode.sessionId} ${part.seq}`, { episode: passage.episode, part, score });
  const found = new Set(hits.map((hit) => places.get(nameOf(hit))?.episode));
  for (const { passage } of ranked) {
    if (near.length === 0 || found.has(passage.episode)) continue;
    const hit = nearHit(passage.episode, near, { question, known, mayShow });
    if (hit !== null) hits.push(hit);
  }
  yield* inOrder(hits, places, matchesOf(question, known));
}

type EpisodePassage = Parameters<typeof rankInSlices>[0][number] & { readonly episode: Episode };

/** Adds the scores of meaning to those of words, as `memory_search` does. */
function withMeaning(
  passages: readonly EpisodePassage[],
  byWords: readonly RankedPassage<EpisodePassage>[],
  near: readonly NearestHit[],
): readonly RankedPassage<EpisodePassage>[] {
  const words = new Map(byWords.map(({ passage, score }) => [passage, score]));
  const nearnessIn = ({ episode }: EpisodePassage): number | null => nearnessOf(near, episode);
  const moved = placesToMove(passages, [...words.keys()], nearnessIn);
  const { least } = nearnessBeside(near);
  const scored = byWordsAndMeaning(
    moved.map((item) => ({ item, words: words.get(item) ?? 0, meaning: nearnessIn(item) ?? least })),
  );
  const isMoved = new Set(moved);
  return [
    ...scored.map(({ item, score }) => ({ passage: item, score: movedScore + score })),
    ...byWords
      .filter(({ passage }) => !isMoved.has(passage))
      .map(({ passage, score }) => ({ passage, score: movedScore * Math.min(1, score) })),
  ];
}

/** Returns a hit for the near text of an episode that no word found; null if none of its records may be shown. */
function nearHit(
  { ref, sessionId, parts }: Episode,
  near: readonly NearestHit[],
  { question, known, mayShow }: { readonly question: string; readonly known: KnownTexts } & Pick<HitRanking, "mayShow">,
): SearchHit | null {
  const nearest = near.find(
    (hit) => hit.sessionId === sessionId && parts.some(({ seq }) => seq >= hit.firstSeq && seq <= hit.lastSeq),
  );
  if (nearest === undefined) return null;
  const shown = parts.filter(
    (part) => part.seq >= nearest.firstSeq && part.seq <= nearest.lastSeq && (mayShow?.(part) ?? true),
  );
  // Neighbors may hold a word of the question. Else the longest part is shown: the answer is usually longer than the question before it.
  const [first] = rankPassages(shown, question, known);
  const part = first?.passage ?? shown.toSorted((one, other) => other.text.length - one.text.length)[0];
  if (part === undefined) return null;
  const { seq, id, role, tsMs, text } = part;
  const isCut = text.length > mostSnippetLength;
  const snippet = isCut ? `${text.slice(0, mostSnippetLength).toWellFormed()}…` : text;
  return { ref, sessionId, seq, id, role, tsMs, score: 0, snippet, highlights: [] };
}

function nameOf({ sessionId, seq }: { readonly sessionId: string; readonly seq: number }): string {
  return `${sessionId} ${seq}`;
}

/** States the episode of a hit, and its score. */
interface Place {
  readonly episode: Episode;
  readonly part: EpisodePart;
  readonly score: number;
}

interface ScoredHit {
  readonly hit: SearchHit;
  readonly isSaid: boolean;
  /** Counts the words of the question that the record has. */
  readonly matched: number;
  readonly score: number;
}

/** Returns a function that counts the different words of a question in a text. */
function matchesOf(question: string, known: KnownTexts): (text: string) => number {
  const asked = readQuestion(question, known);
  const wanted = new Set(asked.topics);
  return (text) => {
    const found = known.wordsOf(text);
    const matched = new Set<number | undefined>();
    for (const word of found.words) matched.add(placeOfWord(word, asked, known));
    for (const name of found.names) matched.add(placeOfName(name, asked, known));
    return [...matched].filter((each) => each !== undefined && wanted.has(each)).length;
  };
}

function inOrder(
  hits: readonly SearchHit[],
  places: ReadonlyMap<string, Place>,
  matchesIn: (text: string) => number,
): readonly SearchHit[] {
  const placed = hits.map((hit) => ({ hit, place: places.get(nameOf(hit)) }));
  const best = new Map<Episode, number>();
  for (const { hit, place } of placed)
    if (place !== undefined) best.set(place.episode, Math.max(best.get(place.episode) ?? 0, hit.score));
  const scored = placed.map(({ hit, place }): ScoredHit => {
    const isSaid = isProse(hit);
    if (place === undefined) return { hit, isSaid, matched: 0, score: 0 };
    const highest = best.get(place.episode) ?? 0;
    const share = highest > 0 ? hit.score / highest : 1;
    return {
      hit,
      isSaid,
      matched: matchesIn(place.part.text),
      score: place.score * (leastShare + (1 - leastShare) * share),
    };
  });
  return behindWords(scored)
    .toSorted((one, other) => other.score - one.score || Number(other.isSaid) - Number(one.isSaid))
    .map(({ hit, score }) => ({ ...hit, score }));
}

/** Lowers the scores of output, so that it comes behind all words of people and models that match as much. */
function behindWords(hits: readonly ScoredHit[]): readonly ScoredHit[] {
  const least: number[] = [];
  for (const { isSaid, matched, score } of hits)
    if (isSaid) least[matched] = Math.min(least[matched] ?? Infinity, score);
  for (let matched = least.length - 2; matched >= 0; matched--)
    least[matched] = Math.min(least[matched] ?? Infinity, least[matched + 1] ?? Infinity);
  return hits.map((each) =>
    each.isSaid ? each : { ...each, score: Math.min(each.score, least[each.matched] ?? Infinity) },
  );
}
