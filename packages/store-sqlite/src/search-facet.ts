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
import { rankAnyOf } from "./rank-any-of.ts";
import { countMatches, isWide, mostExamined, rankMatches, type MatchCounts } from "./rank-matches.ts";
import { IndexFinder, LogFinder, type RecordFinder } from "./record-finders.ts";
import {
  bestPassing,
  hitOf,
  isWorthRanking,
  prepareSearch,
  type FoundRecord,
  type RankedRecord,
  type RecordSearch,
  type Step,
} from "./search-query.ts";
import { SessionFilter } from "./session-filter.ts";
import type { StoreHandle } from "./store-handle.ts";

/** A search is repeated at most so often when the index is emptied meanwhile. */
const mostAttempts = 5;

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
    const step = this.#steps(signal);
    for (const each of await this.#ranked(query, scope, step)) {
      const hit = await step((connection) => hitOf(this.#handle.context, connection, scope.plan, sessions, each));
      if (hit !== null) yield hit;
    }
  }

  /** Returns the records that answer a query, the best first. It starts again if the index was emptied meanwhile. */
  async #ranked(query: SearchQuery, scope: SearchScope, step: Step): Promise<readonly RankedRecord[]> {
    const { signal } = query;
    for (let attempt = 1; ; attempt++) {
      const changes = await this.#changes(signal);
      const indexedTo = await this.#indexedTo(signal);
      const token = this.#index.tokenOf(scope.namespace);
      const narrow = token === null ? await withoutWideBeginnings(scope, step) : null;
      const search = await this.#handle.read(
        (connection) => prepareSearch(connection, query, narrow ?? scope, token),
        signal,
      );
      // Tokens do not show the beginning of a word.
      const hasBeginning = token !== null && scope.plan.clauses.some(({ isPrefix }) => isPrefix);
      const isExact = narrow === null && !hasBeginning && indexedTo === Infinity;
      const ranked = isExact
        ? await this.#indexed(search, scope, step)
        : await this.#lookedThrough(search, scope, { indexedTo, isWide: narrow !== null }, step);
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

  /** Runs each step of a search, and lets other work run after it. */
  #steps(signal: AbortSignal | undefined): Step {
    return async (step) => {
      const result = await this.#handle.read(step, signal);
      await othersTurn();
      return result;
    };
  }

  /**
   * Returns the best matches of the index: of all matches where SQLite ranks them quickly, else of the newest matches.
   */
  async #indexed(search: RecordSearch, scope: SearchScope, step: Step): Promise<readonly RankedRecord[]> {
    if (scope.plan.needs === "any") return rankAnyOf(search, step);
    const newest: FoundRecord[] = [];
    const finder = new IndexFinder(search, Infinity);
    while (newest.length < search.most) {
      const found = await step((connection) => finder.next(connection));
      if (found === null) break;
      newest.push(...found);
    }
    if (newest.length >= search.most && (await step((connection) => isWorthRanking(connection, search))))
      return bestPassing(search, step);
    return rankMatches(await this.#count(scope, newest, search.most, step)).slice(0, scope.limit);
  }

  /**
   * Returns the best of the newest records whose texts match. They come from the records behind the index, and from
   * those that the index finds by the rest of the query. If nothing is left of the query, they come from all records.
   */
  async #lookedThrough(
    search: RecordSearch,
    scope: SearchScope,
    { indexedTo, isWide: isCut }: { readonly indexedTo: number; readonly isWide: boolean },
    step: Step,
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
        const found = await step((connection) => finder.next(connection));
        if (found === null) break;
        examined += found.length;
        counted.push(...(await this.#count(scope, found, search.most - counted.length, step)));
      }
    }
    return rankMatches(counted).slice(0, scope.limit);
  }

  /** Counts matches in the texts of records, a few at a time, until enough records match. */
  async #count(scope: SearchScope, found: readonly FoundRecord[], most: number, step: Step): Promise<MatchCounts[]> {
    const counted: MatchCounts[] = [];
    for (let from = 0; from < found.length && counted.length < most;) {
      const rest = found.slice(from, from + 64);
      const { counts, taken } = await step((connection) => countMatches(this.#handle.context, connection, scope, rest));
      counted.push(...counts.slice(0, most - counted.length));
      from += taken;
    }
    return counted;
  }

  lag(): Promise<number> {
    return this.#handle.read((connection) => this.#index.lag(connection));
  }

  /** Indexes the records that the index lacks, a few milliseconds at a time. */
  async *fill(options: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<number> {
    assertStoreOptions("fill", options);
    this.#handle.life.begin(options.signal);
    yield* this.#filler.fill(options.signal);
  }

  /** Rebuilds the index of words and the index of children from the records. */
  async rebuild(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    assertStoreOptions("rebuild", options);
    this.#handle.life.begin(options.signal);
    return this.#filler.rebuild(options);
  }
}

/** Returns the query without the prefixes that are too common to be looked up, or null when it has none. */
async function withoutWideBeginnings(scope: SearchScope, step: Step): Promise<SearchScope | null> {
  const { clauses } = scope.plan;
  const narrow: SearchClause[] = [];
  for (const clause of clauses)
    if (!clause.isPrefix || !(await step((connection) => isWide(connection, clause)))) narrow.push(clause);
  return narrow.length === clauses.length ? null : { ...scope, plan: { ...scope.plan, clauses: narrow } };
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
