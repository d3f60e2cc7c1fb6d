import type { Connection } from "./connection.ts";
import { passing, type FoundRecord, type RecordSearch } from "./search-query.ts";

/** Goes through records, the newest first, a few milliseconds at a time, so that others get their turn in between. */
export interface RecordFinder {
  /** The next that pass the filters, of which there may be none; null when everything was gone through. */
  next(connection: Connection): readonly FoundRecord[] | null;
}

/** How many matches are looked up at a time: for a single word, and for several words together. */
const wordsAtOnce = 16_384;
const phrasesAtOnce = 4096;
/** How many of them, or of the log's records, pass the filters at a time. */
const passedAtOnce = 2048;

/**
 * The matches of a query up to a record, by the index. Reads a page at a time, because a common word stands in every
 * record. Only a query with a prefix is looked up at once, because FTS5 merges the lists of all words with that prefix
 * each time. `isWide` keeps it short.
 */
export class IndexFinder implements RecordFinder {
  readonly #search: RecordSearch;
  /** Numbers from here on have been looked up. */
  #before: number;
  /** What was looked up, the newest first, and how much of it was taken through the filters. */
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
    // FTS5 takes a bound only from an integer, and goes through the whole list without; JavaScript's numbers are bound as
    // floating-point ones.
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

/** Every record behind a number and up to another, by the log itself. */
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
