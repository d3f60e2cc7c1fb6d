import type { SearchClause } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";

/**
 * Prefixes that match more places than this are not looked up in the index. FTS5 first merges the lists of all words
 * with the prefix. That took seven seconds when a third of the words of 500,000 records matched. For this number it
 * takes 10 ms.
 */
const mostPlaces = 25_000;
/** How many records are searched, the newest first: few are needed for a prefix that common. */
export const mostExamined = 20_000;

/** Whether a clause asks for a beginning that is too common to be looked up. */
export function isWide({ database }: Connection, { isPrefix, words }: SearchClause): boolean {
  if (!isPrefix) return false;
  // A view of the index's own words; it is no part of the file.
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
