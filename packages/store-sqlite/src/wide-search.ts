import type { SearchQuery } from "@throughline/core";
import type { SearchScope } from "@throughline/core/store-search";
import type { Connection } from "./open-connection.ts";
import { findNewest, prepareSearch, type FoundRecord, type RecordSearch } from "./search-query.ts";

/**
 * Beginnings of words that stand in more places than this are not looked up in the index: FTS5 first merges the lists of all
 * words that begin so, which took seven seconds where a third of 500,000 records' words did. In so many it takes 20 ms.
 */
const mostPlaces = 50_000;
/** So many records are looked through, the newest first; where a beginning is that common, few are needed. */
const mostExamined = 20_000;
/** So many are taken from the index at first. */
const firstExamined = 2000;
/** Where nothing else is asked for, so many numbers of the log are gone through at a time. */
const recordsAtOnce = 2000;

/** What is left of a query without the beginnings that are too common; null when none is. */
export function withoutWideBeginnings({ database }: Connection, scope: SearchScope): SearchScope | null {
  const { clauses } = scope.plan;
  if (!clauses.some(({ isPrefix }) => isPrefix)) return null;
  // A view of the index's own words; it is no part of the file.
  database.exec(
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.store_search_places USING fts5vocab (main, store_search, instance)",
  );
  const places = database
    .prepare<[string, string], number>(
      `SELECT count(*) FROM (SELECT 1 FROM temp.store_search_places WHERE term >= ? AND term <= ? LIMIT ${mostPlaces})`,
    )
    .pluck();
  const isWide = (word: string): boolean => (places.get(word, `${word}\u{10FFFF}`) ?? 0) >= mostPlaces;
  const narrow = clauses.filter(({ isPrefix, words }) => !isPrefix || !isWide(words.at(-1) ?? ""));
  return narrow.length === clauses.length ? null : { ...scope, plan: { clauses: narrow } };
}

/**
 * Records that may answer a query whose beginnings were left out of it, to be looked through: those that the rest of it
 * finds, or, where nothing is left of it, all that pass the filters. A part at a time, the newest first.
 */
export class WideSearch {
  readonly #search: RecordSearch;
  readonly #isIndexed: boolean;
  #given = 0;
  /** Numbers from here on have been given. */
  #before = Infinity;
  #isOver = false;

  constructor(connection: Connection, query: SearchQuery, narrow: SearchScope) {
    this.#isIndexed = narrow.plan.clauses.length > 0 || narrow.toolWord !== null;
    this.#search = prepareSearch(connection, query, narrow);
  }

  /** So many matches are enough. */
  get most(): number {
    return this.#search.most;
  }

  /** The next part, which may be empty; null when there are no more, or enough was looked through. */
  next(connection: Connection): readonly FoundRecord[] | null {
    if (this.#isOver || this.#given >= mostExamined) return null;
    const found = this.#isIndexed ? this.#fromIndex(connection) : this.#fromLog(connection);
    this.#given += found.length;
    return found;
  }

  #fromIndex(connection: Connection): FoundRecord[] {
    // Beginning in the middle saves FTS5 nothing, so the second look is the last.
    const most = this.#given === 0 ? firstExamined : mostExamined;
    const found = findNewest(connection, { ...this.#search, most });
    const next = found.filter(({ record }) => record < this.#before);
    this.#isOver = found.length < most || most === mostExamined;
    this.#before = found.at(-1)?.record ?? 0;
    return next;
  }

  #fromLog({ database }: Connection): FoundRecord[] {
    const { newest, where, values } = this.#search;
    const to = Math.min(this.#before - 1, newest);
    this.#before = to - recordsAtOnce + 1;
    this.#isOver = this.#before <= 1;
    return database
      .prepare<unknown[], FoundRecord>(
        `SELECT r.record, r.session, r.seq FROM store_records r NOT INDEXED CROSS JOIN store_sessions s ON s.session = r.session
         WHERE r.record >= ? AND r.record <= ?${where} ORDER BY r.record DESC`,
      )
      .all(this.#before, to, ...values);
  }
}
