import type { CutPlace } from "./cut-places.ts";

export interface CutWish {
  readonly tokens: readonly number[];
  readonly places: readonly CutPlace[];
  /** Holds the index of the first message that may be removed: 1 after a summary, otherwise 0. */
  readonly first: number;
  readonly keepMessages: number;
  readonly keepTokens: number;
  /** Limits the tokens that stay. This limit has priority over both lower bounds. */
  readonly mostKeptTokens: number;
  /** Limits where the kept part may start, because an existing summary covers no message from there on. */
  readonly latest: number;
}

/**
 * Returns indexes of the first message that stays, best first. A place before the wanted index comes first, if the kept
 * part is then small enough. Next comes a place after it: a long run of calls without a user message must not block
 * compaction forever. The last candidate ignores the size of the kept part.
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

function keptFrom(tokens: readonly number[]): readonly number[] {
  const kept = Array.from<number>({ length: tokens.length + 1 }).fill(0);
  for (let index = tokens.length - 1; index >= 0; index--) kept[index] = (kept[index + 1] ?? 0) + (tokens[index] ?? 0);
  return kept;
}

/**
 * Finds the start of the kept part without regard to places. The required part never exceeds half of the context, so
 * that every compaction can remove something.
 */
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
