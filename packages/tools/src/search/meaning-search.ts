import type { SessionRef } from "@throughline/core";
import type { NearestHit } from "@throughline/core/internal";
import { mostScored } from "./passage-scorer.ts";

/** Asks for the texts whose meaning is near a question. */
export interface MeaningQuestion {
  /** Holds the question. */
  readonly text: string;
  /** Names the session that the call belongs to. */
  readonly ref: SessionRef;
  /** States whether the calling session is searched, or all sessions of its agent. */
  readonly reach: "self" | "agent";
  /** States the seq from which on the calling session is in its own context, and is not searched. */
  readonly contextFromSeq: number;
  /** Limits the hits. @default 40, at most 200 */
  readonly limit?: number | undefined;
  /** Returns whether a session is searched. Others are neither found nor counted. @default every session is searched */
  readonly isWanted?: ((ref: SessionRef, sessionId: string) => Promise<boolean>) | undefined;
  /** Ends the search. */
  readonly signal: AbortSignal;
}

/** Holds what a search by meaning found. */
export interface MeaningAnswer {
  /** Lists the hits with the nearest first; empty when nothing was compared. */
  readonly hits: readonly NearestHit[];
  /** States what was not compared. */
  readonly notes: readonly string[];
  /** Holds the error because of which nothing was compared. `notes` describes it. */
  readonly failure?: unknown;
}

/** Finds texts by meaning. It never fails: without vectors it finds nothing and says why. */
export interface MeaningSearch {
  /**
   * Returns the texts that are nearest to the question.
   * @throws {ThroughlineError} ABORTED
   */
  nearest(question: MeaningQuestion): Promise<MeaningAnswer>;
}

/** Returns the best score of the hits that lie in an exchange; null without a hit. */
export function nearnessOf(
  hits: readonly NearestHit[],
  { sessionId, firstSeq, lastSeq }: { readonly sessionId: string; readonly firstSeq: number; readonly lastSeq: number },
): number | null {
  let best: number | null = null;
  for (const hit of hits)
    if (hit.sessionId === sessionId && hit.lastSeq >= firstSeq && hit.firstSeq <= lastSeq)
      best = Math.max(best ?? -1, hit.score);
  return best;
}

/** The best by words keep most of the places that meaning may move. The nearest in meaning get the others. */
const mostNear = 20;

/** Returns the places that meaning may move: the best by words, and those that are nearest in meaning. */
export function placesToMove<Item>(
  all: readonly Item[],
  byWords: readonly Item[],
  nearnessIn: (item: Item) => number | null,
): readonly Item[] {
  const nearest = all
    .map((item) => ({ item, nearness: nearnessIn(item) }))
    .filter(({ nearness }) => nearness !== null)
    .toSorted((one, other) => (other.nearness ?? 0) - (one.nearness ?? 0))
    .slice(0, mostNear)
    .map(({ item }) => item);
  return [...new Set([...byWords.slice(0, mostScored - mostNear), ...nearest, ...byWords])].slice(0, mostScored);
}

/** Returns the score of what is not among the nearest, and of what has no vectors. */
export function nearnessBeside(near: readonly NearestHit[]): { readonly least: number; readonly middle: number } {
  const scores = near.map(({ score }) => score).toSorted((one, other) => one - other);
  return { least: scores[0] ?? 0, middle: scores[scores.length >> 1] ?? 0 };
}
