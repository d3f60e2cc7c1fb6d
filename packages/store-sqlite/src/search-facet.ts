import type { SearchFacet, SearchHit, SearchQuery } from "@throughline/core";
import { readSearchQuery, type SearchScope } from "@throughline/core/store-search";
import type { IndexFiller } from "./index-filler.ts";
import type { Connection } from "./open-connection.ts";
import type { SearchIndex } from "./search-index.ts";
import { countMatches, rankMatches, type MatchCounts } from "./rank-matches.ts";
import {
  findNewest,
  hitOf,
  isWorthRanking,
  prepareSearch,
  rankedRecords,
  type FoundRecord,
  type RankedRecord,
} from "./search-query.ts";
import type { StoreHandle } from "./store-handle.ts";
import { WideSearch, withoutWideBeginnings } from "./wide-search.ts";

/** So many matches are read and ranked at a time: a few milliseconds. */
const rankedAtOnce = 16;

/** Searches a store; what is not indexed yet is, before the answer. */
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
    this.#handle.life.begin(query.signal);
    if (scope.plan.clauses.length === 0) return;
    await this.#filler.catchUp(query.signal);
    for (const each of await this.#ranked(query, scope)) {
      const hit = await this.#handle.read(
        (connection) => hitOf(this.#handle.scene, connection, query, scope.plan, each),
        query.signal,
      );
      if (hit !== null) yield hit;
    }
  }

  /** The records that answer a query, best first. */
  async #ranked(query: SearchQuery, scope: SearchScope): Promise<readonly RankedRecord[]> {
    const { signal } = query;
    const narrow = await this.#handle.read((connection) => withoutWideBeginnings(connection, scope), signal);
    if (narrow !== null) return rankMatches(await this.#lookThrough(query, scope, narrow)).slice(0, scope.limit);
    const search = await this.#handle.read((connection) => prepareSearch(connection, query, scope), signal);
    const newest = await this.#handle.read((connection) => findNewest(connection, search), signal);
    if (isWorthRanking(search, newest))
      return this.#handle.read((connection) => rankedRecords(connection, search), signal);
    return rankMatches(await this.#count(query, scope, newest, Infinity)).slice(0, scope.limit);
  }

  /** What the texts of records say of a query, a few at a time, until so many fit. */
  async #count(
    { signal }: SearchQuery,
    { plan }: SearchScope,
    found: readonly FoundRecord[],
    most: number,
  ): Promise<MatchCounts[]> {
    const counted: MatchCounts[] = [];
    for (let from = 0; from < found.length && counted.length < most; from += rankedAtOnce) {
      const some = found.slice(from, from + rankedAtOnce);
      const count = (connection: Connection): MatchCounts[] => countMatches(this.#handle.scene, connection, plan, some);
      counted.push(...(await this.#handle.read(count, signal)));
      await othersTurn();
    }
    return counted;
  }

  /** The newest matches of a query with a beginning that is too common to be looked up, by their texts. */
  async #lookThrough(query: SearchQuery, scope: SearchScope, narrow: SearchScope): Promise<MatchCounts[]> {
    const { signal } = query;
    const search = await this.#handle.read((connection) => new WideSearch(connection, query, narrow), signal);
    const counted: MatchCounts[] = [];
    while (counted.length < search.most) {
      const found = await this.#handle.read((connection) => search.next(connection), signal);
      if (found === null) break;
      counted.push(...(await this.#count(query, scope, found, search.most - counted.length)));
      await othersTurn();
    }
    return counted;
  }

  lag(): Promise<number> {
    return this.#handle.read((connection) => this.#index.lag(connection));
  }

  /** Makes the index anew from the records, and that of children with it. */
  rebuild(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    return this.#filler.rebuild(options);
  }
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
