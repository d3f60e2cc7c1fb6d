import { findMatches, searchText, type SearchPlan } from "@throughline/core/store-search";
import type { Connection } from "./open-connection.ts";
import { recordOf, rowOf } from "./record-rows.ts";
import type { RankedRecord } from "./search-query.ts";
import { placeOf } from "./session-rows.ts";
import type { StoreScene } from "./store-scene.ts";

/** What a record says of a query: how often each part of it stands there, and how long the text is. */
export interface MatchCounts extends Omit<RankedRecord, "rank"> {
  readonly clauses: readonly number[];
  readonly length: number;
}

/** The counts of some matches, in their order; those that have changed since they were found are left out. */
export function countMatches(
  { rows: coder }: StoreScene,
  { statements }: Connection,
  plan: SearchPlan,
  matches: readonly Omit<RankedRecord, "rank">[],
): MatchCounts[] {
  const counted: MatchCounts[] = [];
  for (const { session, seq } of matches) {
    const owner = statements.findSession.get(session);
    const [found] = statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
    if (owner === undefined || found === undefined) continue;
    const text = searchText(recordOf(coder, placeOf(owner), rowOf(statements, found), "record").record)?.text ?? "";
    const ranges = findMatches(plan, text)?.ranges;
    if (ranges === undefined) continue;
    const clauses = plan.clauses.map((_, index) => ranges.filter((range) => range.clauses.includes(index)).length);
    counted.push({ session, seq, clauses, length: text.length });
  }
  return counted;
}

/** As usual for BM25: how soon repetition stops counting, and how much length counts. */
const [saturation, lengthWeight] = [1.2, 0.75];

/**
 * Best first, by BM25 without the weights of words: every match has every word of the query, so they would change
 * little. Equal ones in the order they came in. As SQLite's, a rank is the lower the better.
 */
export function rankMatches(matches: readonly MatchCounts[]): RankedRecord[] {
  const mean = matches.reduce((sum, { length }) => sum + length, 0) / Math.max(matches.length, 1);
  const ranked = matches.map(({ session, seq, clauses, length }) => {
    const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / Math.max(mean, 1));
    const score = clauses.reduce((sum, count) => sum + (count * (saturation + 1)) / (count + norm), 0);
    return { session, seq, rank: -score };
  });
  return ranked.toSorted((one, other) => one.rank - other.rank);
}
