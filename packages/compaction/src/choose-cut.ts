import type { CutPlace } from "./cut-places.ts";

export interface CutWish {
  /** Tokens of each message. */
  readonly tokens: readonly number[];
  readonly places: readonly CutPlace[];
  /** The first message that may be removed: 1 after a summary, else 0. */
  readonly first: number;
  /** The fewest messages that stay, */
  readonly keepMessages: number;
  /** the fewest tokens of these, */
  readonly keepTokens: number;
  /** and the most tokens, which has priority. */
  readonly mostKeptTokens: number;
  /** The last message that the kept part may begin with: a summary covers what stands before it, and no more. */
  readonly latest: number;
}

/**
 * Indexes of the first message that stays, best first. The nearest place before the wanted one, if the kept part is
 * then not too large. Else it is the nearest one after it, so that a long run of calls without a user message cannot
 * stop compaction for ever. Else it is any place.
 */
export function cutCandidates(wish: CutWish): readonly number[] {
  const { tokens, places, first } = wish;
  const kept = keptFrom(tokens);
  const latest = Math.min(wish.latest, tokens.length - 1);
  const wanted = Math.min(wantedStart(wish, kept), latest);
  const back: number[] = [];
  for (let index = wanted; index > first; index--) back.push(index);
  const forth: number[] = [];
  for (let index = Math.max(wanted, first) + 1; index <= latest; index++) forth.push(index);
  const near = back.filter((index) => (kept[index] ?? 0) <= wish.mostKeptTokens);
  const far = back.slice(near.length);
  const isClean = (index: number): boolean => places[index] === "clean";
  const isPlace = (index: number): boolean => places[index] !== null;
  const last = forth.findLast(isPlace);
  return [
    near.find(isClean),
    forth.find(isClean),
    near.find(isPlace),
    forth.find(isPlace),
    last,
    far.find(isPlace),
  ].filter((index) => index !== undefined);
}

/** Tokens from each message to the end. */
function keptFrom(tokens: readonly number[]): readonly number[] {
  const kept = Array.from<number>({ length: tokens.length + 1 }).fill(0);
  for (let index = tokens.length - 1; index >= 0; index--) kept[index] = (kept[index + 1] ?? 0) + (tokens[index] ?? 0);
  return kept;
}

/** Where the kept part would begin if every place would do. What has to stay never takes more than half of all. */
function wantedStart(wish: CutWish, kept: readonly number[]): number {
  const { tokens, first } = wish;
  const all = kept[first] ?? 0;
  const keepTokens = Math.min(wish.keepTokens, Math.floor(all / 2));
  const keepMessages = Math.min(wish.keepMessages, Math.ceil((tokens.length - first) / 2));
  let start = tokens.length;
  while (start > first) {
    const isEnough = tokens.length - start >= keepMessages && (kept[start] ?? 0) >= keepTokens;
    const isTooMuch = (kept[start - 1] ?? 0) > wish.mostKeptTokens;
    if (start < tokens.length && (isEnough || isTooMuch)) break;
    start--;
  }
  return start;
}
