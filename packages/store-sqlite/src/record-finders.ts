import type { Connection } from "./connection.ts";
import { passing, type FoundRecord, type RecordSearch } from "./search-query.ts";

/** Goes through records, the newest first. Each step takes a few milliseconds, so that other work runs in between. */
export interface RecordFinder {
  /** Returns the next records that pass the filters, possibly none, or null at the end. */
  next(connection: Connection): readonly FoundRecord[] | null;
}

/** One step looks up this many matches: of a single word, and of several words together. */
const wordsAtOnce = 16_384;
const phrasesAtOnce = 4096;
/** One step filters this many of the matches, or of the records of the log. */
const passedAtOnce = 2048;

/**
 * Finds the matches of a query up to a record by the index. It reads a page at a time, because a common word occurs in
 * every record. Only a query with a prefix is looked up at once, because FTS5 merges the lists of all words with that
 * prefix each time. `isWide` keeps that short.
 */
export class IndexFinder implements RecordFinder {
  readonly #search: RecordSearch;
  /** Marks the lowest number that was looked up. */
  #before: number;
  /** Holds the numbers that were looked up, the newest first. `#taken` of them went through the filters. */
  #numbers: readonly number[] = [];
  #taken = 0;

  constructor(search: RecordSearch, toRecord: number) {
    this.#search = search;
    this.#before = Math.min(search.newest, toRecord) + 1;
  }

  next(connection: Connection): readonly FoundRecord[] | null {
    if (this.#taken >= this.#numbers.length) {
      if (this.#before <= 1) return null;
      this.#lookUp(connection);
    }
    const some = this.#numbers.slice(this.#taken, this.#taken + passedAtOnce);
    this.#taken += some.length;
    return some.length === 0 ? [] : passing(connection, this.#search, some);
  }

  #lookUp({ database }: Connection): void {
    const { parts, hasBeginning, isDear } = this.#search;
    const atOnce = isDear || parts.length > 1 ? phrasesAtOnce : wordsAtOnce;
    // FTS5 takes a bound only from an integer, and otherwise reads the whole list. The driver binds numbers of
    // JavaScript as floating-point values.
    const found = database
      .prepare<unknown[], number>(
        `SELECT rowid FROM store_search WHERE store_search MATCH ? AND rowid < CAST(? AS INTEGER)
         ORDER BY rowid DESC LIMIT ?`,
      )
      .pluck()
      .all(parts.join(" AND "), this.#before, hasBeginning ? -1 : atOnce);
    this.#numbers = found;
    this.#taken = 0;
    this.#before = !hasBeginning && found.length === atOnce ? (found.at(-1) ?? 0) : 0;
  }
}

/** Finds every record behind one number and up to another, by the log itself. */
export class LogFinder implements RecordFinder {
  readonly #search: RecordSearch;
  readonly #afterRecord: number;
  #before: number;

  constructor(search: RecordSearch, afterRecord: number, toRecord: number = Infinity) {
    this.#search = search;
    this.#afterRecord = afterRecord;
    this.#before = Math.min(search.newest, toRecord) + 1;
  }

  next(connection: Connection): readonly FoundRecord[] | null {
    if (this.#before <= this.#afterRecord + 1) return null;
    const from = Math.max(this.#afterRecord + 1, this.#before - passedAtOnce);
    const numbers = Array.from({ length: this.#before - from }, (_, index) => from + index);
    this.#before = from;
    return passing(connection, this.#search, numbers);
  }
}
