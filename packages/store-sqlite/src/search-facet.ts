import type { SearchFacet, SearchHit, SearchQuery } from "@throughline/core";
import { readSearchQuery, type SearchScope } from "@throughline/core/store-search";
import type { Connection } from "./open-connection.ts";
import type { SearchIndex } from "./search-index.ts";
import { countMatches, rankMatches, type MatchCounts } from "./rank-matches.ts";
import { findNewest, hitOf, isWorthRanking, prepareSearch, rankedRecords, type RankedRecord } from "./search-query.ts";
import type { StoreHandle } from "./store-handle.ts";

/** When the index is filled: behind the turns, or only when somebody searches. */
export type SearchFill = "background" | "on-demand";

/** After the last write of a burst it is quiet for so long before the index is filled. */
const quietMs = 200;
/** A burst that does not end is not waited for longer. */
const longestWaitMs = 2000;

/** Without a turn for so long it is quiet enough for one batch. */
const betweenTurnsMs = 30;
/** While turns come without a pause there is one batch in so long. */
const betweenBatchesMs = 250;

/** So many matches are read and ranked at a time: a few milliseconds. */
const rankedAtOnce = 16;

/** After each batch the index is merged in at most so many steps. */
const mostMerges = 16;

/** Searches a store, and keeps its index behind the log by as little as turns allow. */
export class SearchFiller implements SearchFacet {
  readonly #handle: StoreHandle;
  readonly #index: SearchIndex;
  readonly #fill: SearchFill;
  #timer: NodeJS.Timeout | null = null;
  #waitingSinceMs = 0;
  #lastWriteMs = 0;
  #isStopping = false;
  #wake: () => void = () => undefined;
  #filling: Promise<void> | null = null;

  constructor(handle: StoreHandle, index: SearchIndex, fill: SearchFill) {
    this.#handle = handle;
    this.#index = index;
    this.#fill = fill;
  }

  async *search(query: SearchQuery): AsyncGenerator<SearchHit> {
    const scope = readSearchQuery(query);
    this.#handle.life.begin(query.signal);
    if (scope.plan.clauses.length === 0) return;
    await this.#catchUpNow(query.signal);
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
    const search = await this.#handle.read((connection) => prepareSearch(connection, query, scope), signal);
    const newest = await this.#handle.read((connection) => findNewest(connection, search), signal);
    if (isWorthRanking(search, newest))
      return this.#handle.read((connection) => rankedRecords(connection, search), signal);
    const counted: MatchCounts[] = [];
    for (let from = 0; from < newest.length; from += rankedAtOnce) {
      const some = newest.slice(from, from + rankedAtOnce);
      const count = (connection: Connection): MatchCounts[] =>
        countMatches(this.#handle.scene, connection, scope.plan, some);
      counted.push(...(await this.#handle.read(count, signal)));
      await othersTurn();
    }
    return rankMatches(counted).slice(0, scope.limit);
  }

  lag(): Promise<number> {
    return this.#handle.read((connection) => this.#index.lag(connection));
  }

  /** Makes the index anew from the records. */
  async rebuild(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#handle.write(({ connection }) => this.#index.clear(connection), { durability: "process", ...options });
    await this.#catchUpNow(options.signal);
  }

  /** Called after every commit of a turn. */
  poke(): void {
    const nowMs = this.#handle.scene.clock.nowMs();
    this.#lastWriteMs = nowMs;
    if (this.#fill === "on-demand" || this.#filling !== null) return;
    if (this.#timer === null) this.#waitingSinceMs = nowMs;
    else if (nowMs - this.#waitingSinceMs >= longestWaitMs) return;
    else clearTimeout(this.#timer);
    // A process that has nothing else to do may end: the next one goes on.
    this.#timer = setTimeout(() => this.#fillBehind(), quietMs).unref();
  }

  /** Ends what is under way, for the handle is closing. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isStopping = true;
    this.#wake();
    await this.#filling;
  }

  #fillBehind(): void {
    this.#timer = null;
    // What fails here fails again for whoever searches, and is told to him.
    this.#filling = this.#fillWhenQuiet().then(
      () => this.#filled(),
      () => this.#filled(),
    );
  }

  #filled(): void {
    this.#filling = null;
  }

  /** Indexes everything that is there now. */
  async #catchUpNow(signal: AbortSignal | undefined): Promise<void> {
    await this.#catchUp(await this.#handle.read((connection) => this.#index.newestRecord(connection), signal), signal);
  }

  /** Indexes what there is, batch by batch, each when no turn was written for a moment, or has been for long. */
  async #fillWhenQuiet(): Promise<void> {
    const { clock } = this.#handle.scene;
    for (;;) {
      const startedMs = clock.nowMs();
      const isBusy = (): boolean =>
        clock.nowMs() - this.#lastWriteMs < betweenTurnsMs && clock.nowMs() - startedMs < betweenBatchesMs;
      while (isBusy() && !this.#isStopping) await this.#rest();
      if (this.#isStopping || (await this.lag()) === 0) return;
      await this.#catchUp(0);
    }
  }

  /** A process that has nothing else to do may end meanwhile; closing does not wait for it. */
  #rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, betweenTurnsMs).unref();
    });
  }

  /** Indexes the records up to a number, a few milliseconds at a time; at least one batch. */
  async #catchUp(toRecord: number, signal?: AbortSignal): Promise<void> {
    for (let isDone = false; !isDone;) {
      const batch = await this.#handle.read((connection) => this.#index.nextBatch(connection), signal);
      if (batch === null) return;
      const isWritten = await this.#handle.write(({ connection }) => this.#index.writeBatch(connection, batch), {
        durability: "process",
        signal,
      });
      isDone = isWritten && batch.toRecord >= toRecord;
      await this.#merge(signal);
    }
  }

  /** Keeps the index in few parts, so that searching it stays fast, in steps as short as those of filling it. */
  async #merge(signal: AbortSignal | undefined): Promise<void> {
    const step = { durability: "process", signal } as const;
    for (let steps = 0; steps < mostMerges; steps++) {
      if (!(await this.#handle.write(({ connection }) => this.#index.merge(connection), step))) return;
    }
  }
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
