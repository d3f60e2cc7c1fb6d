import { findMatches, searchText, toolWord } from "@throughline/core/internal";
import type { SearchClause, SearchScope, SearchText } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import { wholeRecordOf } from "./record-rows.ts";
import type { FoundRecord, RankedRecord } from "./search-query.ts";
import type { StoreContext } from "./store-context.ts";

/** Reading this many matches, or this much of their text, takes a few milliseconds. */
const readAtOnce = 16;
const readCharacters = 64 * 1024;

/** Counts how often each part of a query occurs in a record, and how long its text is. */
export interface MatchCounts extends Omit<RankedRecord, "rank"> {
  readonly clauses: readonly number[];
  readonly length: number;
}

/**
 * Counts the matches in the first of some records, in their order, and returns how many records were read. Records that
 * do not match, or have changed since they were found, are left out.
 */
export function countMatches(
  { rows: coder }: StoreContext,
  { statements }: Connection,
  scope: SearchScope,
  found: readonly FoundRecord[],
): { readonly counts: readonly MatchCounts[]; readonly taken: number } {
  const counts: MatchCounts[] = [];
  let taken = 0;
  for (let characters = 0; taken < found.length && taken < readAtOnce && characters < readCharacters; taken++) {
    const { session, seq } = found[taken] ?? { session: 0, seq: 0 };
    const owner = statements.findSession.get(session);
    const [row] = statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
    if (owner === undefined || row === undefined) continue;
    const whole = wholeRecordOf(coder, owner, statements, row);
    const said = whole === null ? null : searchText(whole.record);
    characters += said?.text.length ?? 0;
    if (said === null || !isWanted(said, scope)) continue;
    const ranges = findMatches(scope.plan, said.text)?.ranges;
    if (ranges === undefined) continue;
    const clauses = scope.plan.clauses.map(
      (_, index) => ranges.filter((range) => range.clauses.includes(index)).length,
    );
    counts.push({ session, seq, clauses, length: said.text.length });
  }
  return { counts, taken };
}

/** Under a codec the row does not state the role. */
function isWanted(said: SearchText, { toolWord: tool, role }: SearchScope): boolean {
  return (role === null || said.role === role) && (tool === null || said.toolNames.map(toolWord).includes(tool));
}

/** The usual constants of BM25: when repetition stops counting, and how much the length counts. */
const [saturation, lengthWeight] = [1.2, 0.75];

/**
 * Sorts by BM25, the best first. A word that fewer of these matches have weighs more; a word that all have weighs one.
 * Equal matches keep their order. A lower rank is better, the same as in SQLite.
 */
export function rankMatches(matches: readonly MatchCounts[]): RankedRecord[] {
  const holders: number[] = [];
  for (const { clauses } of matches)
    for (const [index, count] of clauses.entries()) holders[index] = (holders[index] ?? 0) + Math.min(count, 1);
  const weights = holders.map((count) => 1 + Math.log(matches.length / Math.max(count, 1)));
  const mean = matches.reduce((sum, { length }) => sum + length, 0) / Math.max(matches.length, 1);
  const ranked = matches.map(({ session, seq, clauses, length }) => {
    const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / Math.max(mean, 1));
    const score = clauses.reduce(
      (sum, count, index) => sum + ((weights[index] ?? 1) * count * (saturation + 1)) / (count + norm),
      0,
    );
    return { session, seq, rank: -score };
  });
  return ranked.toSorted((one, other) => one.rank - other.rank);
}

/**
 * A prefix that matches more places than this is not looked up in the index. FTS5 first merges the lists of all words
 * with the prefix. That took seven seconds when a third of the words of 500,000 records matched, and takes 10 ms for
 * this number.
 */
const mostPlaces = 25_000;
/** A query with such a prefix reads this many of the newest records. A prefix that common needs few of them. */
export const mostExamined = 20_000;

/** Returns whether the prefix of a clause is too common to be looked up. */
export function isWide({ database }: Connection, { words }: SearchClause): boolean {
  // The table shows the words of the index and is no part of the file.
  database.exec(
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.store_search_places USING fts5vocab (main, store_search, instance)",
  );
  const word = words.at(-1) ?? "";
  const places = database
    .prepare<[string, string], number>(
      `SELECT count(*) FROM (SELECT 1 FROM temp.store_search_places WHERE term >= ? AND term <= ? LIMIT ${mostPlaces})`,
    )
    .pluck()
    .get(word, `${word}\u{10FFFF}`);
  return (places ?? 0) >= mostPlaces;
}
