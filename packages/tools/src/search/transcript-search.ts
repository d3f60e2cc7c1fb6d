import type { SearchFacet, SessionRef, SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { abortedBefore, messageRole, type NearestHit } from "@throughline/core/internal";
import { episodesOf, type Episode } from "./episodes.ts";
import type { MeaningAnswer, MeaningSearch } from "./meaning-search.ts";
import { mostCandidates, RecordsAround } from "./records-around.ts";
import { wordsToLookUp } from "./words-to-look-up.ts";

/** Limits the transcripts that one search reads. */
export interface TranscriptLimits {
  /** Limits the records of one search. */
  readonly records: number;
  /** Limits the bytes of one search. */
  readonly bytes: number;
}

export interface TranscriptQuestion {
  /** Holds the store, which is limited to the calling agent. */
  readonly store: SessionStore;
  /** Names the session that the call belongs to. */
  readonly ref: SessionRef;
  readonly reach: "self" | "agent";
  readonly query: string;
  readonly limits: TranscriptLimits;
  /** Adds what is near in meaning. @default words alone */
  readonly meaning?: MeaningSearch | undefined;
  readonly signal: AbortSignal;
}

export interface FoundEpisodes {
  readonly episodes: readonly Episode[];
  readonly recordCount: number;
  /** Lists the texts that are near in meaning. Their exchanges are among `episodes`. */
  readonly near: readonly NearestHit[];
  readonly notes: readonly string[];
}

/**
 * Finds the episodes that may hold an answer. With a search index it reads the records around each hit. Without an
 * index it reads the newest records within the limits. For the calling session, records that its context still holds
 * are left out.
 */
export async function findEpisodes(question: TranscriptQuestion): Promise<FoundEpisodes> {
  const { store, ref, signal } = question;
  const own = await store.load(ref, { signal });
  const search = new TranscriptSearch(question, own);
  const meant = search.meant();
  // A failure of the search for words is thrown first.
  meant.catch(() => {});
  const found = await (store.search === undefined ? search.scanned(meant) : search.indexed(store.search, meant));
  return { ...found, notes: [...found.notes, ...(await meant).notes] };
}

/** Records that the context still holds may be among the best, so more are asked for where the session is searched. */
const mostHits = 1000;

class TranscriptSearch {
  readonly #question: TranscriptQuestion;
  readonly #own: SessionState | null;
  #contextFromSeq: number | null = null;

  constructor(question: TranscriptQuestion, own: SessionState | null) {
    this.#question = question;
    this.#own = own;
  }

  /** Asks for what is near in meaning, while words are searched. */
  async meant(): Promise<MeaningAnswer> {
    const { meaning, query: text, ref, reach, signal } = this.#question;
    if (meaning === undefined) return { hits: [], notes: [] };
    const contextFromSeq = this.#own === null ? Infinity : await this.#contextFrom(this.#own);
    const { hits, notes } = await meaning.nearest({ text, ref, reach, contextFromSeq, signal });
    const isPast = ({ sessionId, lastSeq }: NearestHit): boolean =>
      sessionId !== this.#own?.sessionId || lastSeq < contextFromSeq;
    return { hits: hits.filter(isPast), notes };
  }

  async scanned(meant: Promise<MeaningAnswer>): Promise<FoundEpisodes> {
    const { records: mostRecords, bytes: mostBytes } = this.#question.limits;
    const episodes: Episode[] = [];
    const notes: string[] = [];
    let [recordCount, bytes] = [0, 0];
    for await (const state of this.#sessions()) {
      const records = await this.#newest(state, { records: mostRecords - recordCount, bytes: mostBytes - bytes });
      recordCount += records.length;
      bytes += records.reduce((sum, record) => sum + record.bytes, 0);
      episodes.push(...episodesOf(state, records));
      if (recordCount < mostRecords && bytes < mostBytes) continue;
      notes.push("older records were not searched");
      break;
    }
    const { hits: near } = await meant;
    const around = this.#recordsAround();
    for (const { ref, sessionId, firstSeq, lastSeq } of near) {
      const isRead = episodes.some(
        (one) => one.sessionId === sessionId && one.lastSeq >= firstSeq && one.firstSeq <= lastSeq,
      );
      if (!isRead) await around.add({ ref, sessionId, seq: firstSeq });
    }
    episodes.push(...(await around.episodes()));
    return { episodes, near, recordCount: recordCount + around.recordCount, notes };
  }

  async indexed(facet: SearchFacet, meant: Promise<MeaningAnswer>): Promise<FoundEpisodes> {
    const { query, ref, reach, signal } = this.#question;
    const anyOf = wordsToLookUp(query);
    const place = { namespace: ref.namespace, agentId: ref.agentId, ...(reach === "self" ? { key: ref.key } : {}) };
    const limit = this.#own === null ? mostCandidates : mostHits;
    const around = this.#recordsAround();
    const words = { anyOf, state: "active", limit, signal, ...place } as const;
    for await (const hit of anyOf.length === 0 ? [] : facet.search(words)) {
      if (await this.#isInContext(hit)) continue;
      if (!(await around.add(hit))) break;
    }
    const { hits: near } = await meant;
    for (const { ref: at, sessionId, firstSeq } of near) await around.add({ ref: at, sessionId, seq: firstSeq });
    const episodes = await around.episodes();
    return { episodes, near, recordCount: around.recordCount, notes: [] };
  }

  #recordsAround(): RecordsAround {
    const { store, signal, limits } = this.#question;
    return new RecordsAround({
      storeOf: () => store,
      endOf: async (sessionId) => (sessionId === this.#own?.sessionId ? this.#contextFrom(this.#own) : Infinity),
      mostRecords: limits.records,
      mostBytes: limits.bytes,
      signal: () => signal,
    });
  }

  async *#sessions(): AsyncGenerator<SessionState> {
    const { store, ref, reach, signal } = this.#question;
    if (this.#own !== null) yield this.#own;
    if (reach === "self") return;
    let cursor: string | null = null;
    do {
      if (signal.aborted) throw abortedBefore("the next sessions were listed", signal);
      const page = await store.list({
        namespace: ref.namespace,
        agentId: ref.agentId,
        limit: 100,
        signal,
        ...(cursor === null ? {} : { cursor }),
      });
      for (const state of page.sessions) if (state.sessionId !== this.#own?.sessionId) yield state;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  /** Returns the newest records of a session in their order, up to a page beyond the bytes. */
  async #newest(state: SessionState, most: TranscriptLimits): Promise<readonly StoredRecord[]> {
    const { store, signal } = this.#question;
    const isOwn = state.sessionId === this.#own?.sessionId;
    const records: StoredRecord[] = [];
    let bytes = 0;
    const range = isOwn ? { beforeSeq: await this.#contextFrom(state) } : {};
    for await (const page of store.read(state.ref, { order: "descending", limit: most.records, signal, ...range })) {
      if (signal.aborted) throw abortedBefore("the next records were read", signal);
      for (const record of page.records) bytes += record.bytes;
      records.push(...page.records);
      if (bytes >= most.bytes) break;
    }
    return records.toReversed();
  }

  async #isInContext({ sessionId, seq }: { readonly sessionId: string; readonly seq: number }): Promise<boolean> {
    return this.#own !== null && sessionId === this.#own.sessionId && seq >= (await this.#contextFrom(this.#own));
  }

  /**
   * The context of the session starts at `windowSeq`. Without a stated window it starts at the last message of the
   * user.
   */
  async #contextFrom(own: SessionState): Promise<number> {
    this.#contextFromSeq ??= own.head.windowSeq ?? (await this.#lastUserSeq(own));
    return this.#contextFromSeq;
  }

  async #lastUserSeq({ ref, head }: SessionState): Promise<number> {
    const { store, signal } = this.#question;
    for await (const page of store.read(ref, { order: "descending", limit: 500, signal })) {
      for (const { seq, record } of page.records) {
        if (messageRole(record) === "user") return seq;
      }
    }
    return head.lastSeq + 1;
  }
}
