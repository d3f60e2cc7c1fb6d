import {
  assertStoreOptions,
  createFinding,
  readSearchQuery,
  type SearchClause,
  type SearchScope,
} from "@throughline/core/internal";
import type { SearchFacet, SearchHit, SearchQuery } from "@throughline/core";
import type { IndexFiller } from "./index-filler.ts";
import type { SearchIndex } from "./search-index.ts";
import { countMatches, isWide, mostExamined, rankMatches, type MatchCounts } from "./rank-matches.ts";
import { IndexFinder, LogFinder, type RecordFinder } from "./record-finders.ts";
import {
  hitOf,
  isWorthRanking,
  passing,
  prepareSearch,
  rankedNumbers,
  type FoundRecord,
  type RankedRecord,
  type RecordSearch,
} from "./search-query.ts";
import { SessionFilter } from "./session-filter.ts";
import type { StoreHandle } from "./store-handle.ts";

/** A search is repeated at most so often when the index is emptied meanwhile. */
const mostAttempts = 5;

/** One step filters this many of the best matches. */
const passedAtOnce = 1024;

/**
 * Searches a store, after it indexes the records that the index lacks. Each step takes a few milliseconds, and other
 * work runs in between.
 */
export class StoreSearch implements SearchFacet {
  readonly #handle: StoreHandle;
  readonly #index: SearchIndex;
  readonly #filler: IndexFiller;

  constructor(handle: StoreHandle, index: SearchIndex, filler: IndexFiller) {
    this.#handle = handle;
    this.#index = index;
    this.#filler = filler;
  }

  async *search(query: SearchQuery): AsyncGenerator<SearchHit> {
    const scope = readSearchQuery(query);
    const { signal } = query;
    this.#handle.life.begin(signal);
    if (scope.plan.clauses.length === 0) return;
    const sessions = new SessionFilter(query, scope);
    for (const each of await this.#ranked(query, scope)) {
      const hit = await this.#handle.read(
        (connection) => hitOf(this.#handle.context, connection, scope.plan, sessions, each),
        signal,
      );
      if (hit !== null) yield hit;
      await othersTurn();
    }
  }

  /** Returns the records that answer a query, the best first. It starts again if the index was emptied meanwhile. */
  async #ranked(query: SearchQuery, scope: SearchScope): Promise<readonly RankedRecord[]> {
    const { signal } = query;
    for (let attempt = 1; ; attempt++) {
      const changes = await this.#changes(signal);
      const indexedTo = await this.#indexedTo(signal);
      const narrow = await this.#withoutWideBeginnings(scope, signal);
      const search = await this.#handle.read((connection) => prepareSearch(connection, query, narrow ?? scope), signal);
      const isExact = narrow === null && indexedTo === Infinity;
      const ranked = isExact
        ? await this.#indexed(search, scope, signal)
        : await this.#lookedThrough(search, scope, { indexedTo, isWide: narrow !== null }, signal);
      // Redactions change the number too. The limit keeps constant redactions from blocking a search.
      if (attempt === mostAttempts || (await this.#changes(signal)) === changes) return ranked;
    }
  }

  #changes(signal: AbortSignal | undefined): Promise<number> {
    return this.#handle.read((connection) => this.#index.changes(connection), signal);
  }

  /**
   * Returns the last record that the index can be used for, or Infinity when it has all records. If the index cannot be
   * filled, a finding is reported.
   */
  async #indexedTo(signal: AbortSignal | undefined): Promise<number> {
    const reason = await this.#filler.catchUpIfWritable(signal);
    if (reason === null) return Infinity;
    const [indexedTo, lag] = await this.#handle.read(
      (connection) => [this.#index.indexedTo(connection), this.#index.lag(connection)] as const,
      signal,
    );
    // Only the index of children could not be written, which no search reads.
    if (lag === 0) return Infinity;
    const why = reason.code === "ABORTED" ? "Another connection holds the database." : reason.message;
    const message = `${lag} records are not in the search index, which could not be written, and were read instead: ${why}`;
    this.#handle.tell(createFinding("SEARCH_INDEX_BEHIND", message, { path: this.#handle.context.path }));
    return indexedTo;
  }

  /** Returns the query without the prefixes that are too common to be looked up, or null when it has none. */
  async #withoutWideBeginnings(scope: SearchScope, signal: AbortSignal | undefined): Promise<SearchScope | null> {
    const narrow: SearchClause[] = [];
    for (const clause of scope.plan.clauses) {
      if (!(await this.#handle.read((connection) => isWide(connection, clause), signal))) narrow.push(clause);
      await othersTurn();
    }
    return narrow.length === scope.plan.clauses.length ? null : { ...scope, plan: { clauses: narrow } };
  }

  /**
   * Returns the best matches of the index: of all matches where SQLite ranks them quickly, else of the newest matches.
   */
  async #indexed(
    search: RecordSearch,
    scope: SearchScope,
    signal: AbortSignal | undefined,
  ): Promise<readonly RankedRecord[]> {
    const newest: FoundRecord[] = [];
    const finder = new IndexFinder(search, Infinity);
    while (newest.length < search.most) {
      const found = await this.#next(finder, signal);
      if (found === null) break;
      newest.push(...found);
    }
    if (newest.length >= search.most) {
      if (await this.#handle.read((connection) => isWorthRanking(connection, search), signal))
        return this.#rankedBySqlite(search, signal);
    }
    return rankMatches(await this.#count(scope, newest, search.most, signal)).slice(0, scope.limit);
  }

  async #rankedBySqlite(search: RecordSearch, signal: AbortSignal | undefined): Promise<readonly RankedRecord[]> {
    const ranked = await this.#handle.read((connection) => rankedNumbers(connection, search), signal);
    const best: RankedRecord[] = [];
    for (let from = 0; from < ranked.length && best.length < search.limit; from += passedAtOnce) {
      await othersTurn();
      const some = ranked.slice(from, from + passedAtOnce);
      const numbers = some.map(({ record }) => record);
      const found = await this.#handle.read((connection) => passing(connection, search, numbers), signal);
      const places = new Map(found.map((each) => [each.record, each]));
      for (const { record, rank } of some) {
        const place = places.get(record);
        if (place !== undefined) best.push({ session: place.session, seq: place.seq, rank });
      }
    }
    return best.slice(0, search.limit);
  }

  /**
   * Returns the best of the newest records whose texts match. They come from the records behind the index, and from
   * those that the index finds by the rest of the query. If nothing is left of the query, they come from all records.
   */
  async #lookedThrough(
    search: RecordSearch,
    scope: SearchScope,
    { indexedTo, isWide: isCut }: { readonly indexedTo: number; readonly isWide: boolean },
    signal: AbortSignal | undefined,
  ): Promise<readonly RankedRecord[]> {
    const finders: { readonly finder: RecordFinder; readonly most: number }[] = [];
    if (indexedTo !== Infinity) finders.push({ finder: new LogFinder(search, indexedTo), most: Infinity });
    const hasParts = search.parts.length > 0;
    finders.push({
      finder: hasParts ? new IndexFinder(search, indexedTo) : new LogFinder(search, 0, indexedTo),
      most: isCut ? mostExamined : Infinity,
    });
    const counted: MatchCounts[] = [];
    for (const { finder, most } of finders) {
      for (let examined = 0; examined < most && counted.length < search.most;) {
        const found = await this.#next(finder, signal);
        if (found === null) break;
        examined += found.length;
        counted.push(...(await this.#count(scope, found, search.most - counted.length, signal)));
      }
    }
    return rankMatches(counted).slice(0, scope.limit);
  }

  async #next(finder: RecordFinder, signal: AbortSignal | undefined): Promise<readonly FoundRecord[] | null> {
    const found = await this.#handle.read((connection) => finder.next(connection), signal);
    await othersTurn();
    return found;
  }

  /** Counts matches in the texts of records, a few at a time, until enough records match. */
  async #count(
    scope: SearchScope,
    found: readonly FoundRecord[],
    most: number,
    signal: AbortSignal | undefined,
  ): Promise<MatchCounts[]> {
    const counted: MatchCounts[] = [];
    for (let from = 0; from < found.length && counted.length < most;) {
      const rest = found.slice(from, from + 64);
      const { counts, taken } = await this.#handle.read(
        (connection) => countMatches(this.#handle.context, connection, scope, rest),
        signal,
      );
      counted.push(...counts.slice(0, most - counted.length));
      from += taken;
      await othersTurn();
    }
    return counted;
  }

  lag(): Promise<number> {
    return this.#handle.read((connection) => this.#index.lag(connection));
  }

  /** Indexes the records that the index lacks, a few milliseconds at a time. */
  async *fill(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<number> {
    assertStoreOptions("fill", options);
    this.#handle.life.begin(options.signal);
    yield* this.#filler.fill(options.signal);
  }

  /** Rebuilds the index of words and the index of children from the records. */
  async rebuild(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    assertStoreOptions("rebuild", options);
    this.#handle.life.begin(options.signal);
    return this.#filler.rebuild(options);
  }
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
