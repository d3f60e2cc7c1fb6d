import { IndexFinder } from "./record-finders.ts";
import {
  bestPassing,
  countMatching,
  withClauses,
  type FoundRecord,
  type RankedRecord,
  type RecordSearch,
  type Step,
} from "./search-query.ts";

/**
 * SQLite ranks at most this many matches of words, because it ranks all of them in one step. A match costs 0.9 to 1.9
 * microseconds. Over 200,000 records of 8 to 32 words, 9,900 matches took 14 ms, and 45,000 took 53 ms. Eight frequent
 * words have 310,000 matches, which took 286 ms.
 */
const mostRanked = 15_000;
/** The rarest words of a search are never left out. */
const fewestClauses = 3;
/** Limits how many of the newest records with a word are ranked where even the rarest words have too many matches. */
const newestOfClause = 2000;

interface CountedClause {
  readonly clause: string;
  /** Counts the records with the clause, up to `mostRanked + 1`. */
  readonly count: number;
}

/**
 * Returns the best records of a search for any of some words. Frequent words are left out while three rarer words
 * remain. They are used again where the rarer ones find too little, as in an agent that has none of them.
 */
export async function rankAnyOf(search: RecordSearch, step: Step): Promise<readonly RankedRecord[]> {
  const counted: CountedClause[] = [];
  for (const clause of search.clauses) {
    const count = await step((connection) => countMatching(connection, clause, mostRanked + 1));
    if (count > 0) counted.push({ clause, count });
  }
  counted.sort((one, other) => one.count - other.count);
  const tool = search.tool;
  const ofTool = tool === null ? 0 : await step((connection) => countMatching(connection, tool, mostRanked + 1));
  const kept = rarest(counted);
  if (kept.length === 0) return [];
  const isQuick = sumOf(kept) <= mostRanked && ofTool <= mostRanked;
  const best = isQuick
    ? await bestPassing(
        withClauses(
          search,
          kept.map(({ clause }) => clause),
        ),
        step,
      )
    : await newestOf(search, kept, newestOfClause, step);
  if (best.length >= search.limit || kept.length === counted.length) return best;
  const known = new Set(best.map(({ session, seq }) => `${session}/${seq}`));
  const others = await newestOf(search, counted.slice(kept.length), search.most, step);
  // The scales of both ranks differ. What only frequent words find comes behind, in its order.
  const behind = others
    .filter(({ session, seq }) => !known.has(`${session}/${seq}`))
    .map((each) => ({ ...each, rank: 0 }));
  return [...best, ...behind].slice(0, search.limit);
}

function rarest(counted: readonly CountedClause[]): readonly CountedClause[] {
  let kept = counted;
  while (kept.length > fewestClauses && sumOf(kept) > mostRanked) kept = kept.slice(0, -1);
  return kept;
}

function sumOf(counted: readonly CountedClause[]): number {
  return counted.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Ranks the newest records with each of some words by which of the words they have, rarer words first, and equal
 * records newest first. It reads the index in steps, where the ranking of SQLite would count every match in one.
 */
async function newestOf(
  search: RecordSearch,
  counted: readonly CountedClause[],
  mostOfClause: number,
  step: Step,
): Promise<readonly RankedRecord[]> {
  const found = new Map<number, FoundRecord & { readonly weight: number }>();
  for (const { clause, count } of counted) {
    const weight = 1 + Math.log((search.newest + 1) / count);
    const finder = new IndexFinder(withClauses(search, [clause]), Infinity);
    for (let taken = 0; taken < mostOfClause;) {
      const some = await step((connection) => finder.next(connection));
      if (some === null) break;
      for (const each of some)
        found.set(each.record, { ...each, weight: weight + (found.get(each.record)?.weight ?? 0) });
      taken += some.length;
    }
  }
  return [...found.values()]
    .toSorted((one, other) => other.weight - one.weight || other.record - one.record)
    .slice(0, search.limit)
    .map(({ session, seq, weight }) => ({ session, seq, rank: -weight }));
}
