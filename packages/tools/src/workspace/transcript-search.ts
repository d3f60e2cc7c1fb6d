import type { SearchFacet, SessionRef, SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { messageRole, searchIndexText } from "@throughline/core/internal";
import { episodesOf, type Episode, type EpisodeSession } from "./episodes.ts";
import { stopWords } from "./stop-words.ts";
import { assertNotAborted } from "./workspace-tool.ts";

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
  /** Names the search tool, whose own results are not searched. */
  readonly toolName: string;
  readonly limits: TranscriptLimits;
  readonly signal: AbortSignal;
}

export interface FoundEpisodes {
  readonly episodes: readonly Episode[];
  readonly recordCount: number;
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
  return store.search === undefined ? search.scanned() : search.indexed(store.search);
}

/** These are the limits of a search for any of some words. Of a longer question the longest words are looked up. */
const mostWords = 64;
const mostWordsLength = 1000;
/**
 * The index ranks single records, and the ranking of episodes then puts the answer first. Among 200,000 records a hundred
 * hits hold less of the evidence than 400.
 */
const mostCandidates = 400;
/** Records that the context still holds may be among the best, so more are asked for where the session is searched. */
const mostHits = 1000;
/** Records this close to a hit usually belong to the same exchange. */
const recordsAround = 4;
/** An exchange with many calls of tools begins and ends farther away, so this number of records is read at a time. */
const recordsBeyond = 12;
const mostBeyond = 24;
/**
 * The search ends after this number of candidates, or a multiple of it, once it has read enough. Of answers of 500 words, the first hundred
 * candidates hold 98.6 % of the evidence, and all 400 would take twice the time.
 */
const candidatesAtOnce = 100;
const enoughBytes = 3_000_000;

interface Candidate {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly seq: number;
}

class TranscriptSearch {
  readonly #question: TranscriptQuestion;
  readonly #own: SessionState | null;
  readonly #episodes: Episode[] = [];
  readonly #notes: Set<string> = new Set();
  /** Holds the records around the candidates by session and seq. */
  readonly #read = new Map<string, ReadRecords>();
  #records = 0;
  #bytes = 0;
  #contextFromSeq: number | null = null;

  constructor(question: TranscriptQuestion, own: SessionState | null) {
    this.#question = question;
    this.#own = own;
  }

  async scanned(): Promise<FoundEpisodes> {
    for await (const state of this.#sessions()) {
      if (this.#isFull()) {
        this.#notes.add("older records were not searched");
        break;
      }
      await this.#scan(state);
    }
    return this.#result();
  }

  async indexed(facet: SearchFacet): Promise<FoundEpisodes> {
    const { query, ref, reach, signal } = this.#question;
    const anyOf = wordsToLookUp(query);
    if (anyOf.length === 0) return this.#result();
    const place = { namespace: ref.namespace, agentId: ref.agentId, ...(reach === "self" ? { key: ref.key } : {}) };
    const limit = this.#own === null ? mostCandidates : mostHits;
    let some: Candidate[] = [];
    let count = 0;
    for await (const hit of facet.search({ anyOf, state: "active", limit, signal, ...place })) {
      if (await this.#isInContext(hit)) continue;
      some.push({ ref: hit.ref, sessionId: hit.sessionId, seq: hit.seq });
      if (++count % candidatesAtOnce !== 0) continue;
      await this.#readAround(some);
      some = [];
      if (count >= mostCandidates || this.#bytes >= enoughBytes) break;
    }
    await this.#readAround(some);
    for (const { session, records } of this.#read.values()) {
      const inOrder = [...records.values()].toSorted((one, other) => one.seq - other.seq);
      this.#add(session, inOrder);
    }
    return this.#result();
  }

  #result(): FoundEpisodes {
    return { episodes: this.#episodes, recordCount: this.#records, notes: [...this.#notes] };
  }

  #isFull(): boolean {
    const { records, bytes } = this.#question.limits;
    return this.#records >= records || this.#bytes >= bytes;
  }

  async *#sessions(): AsyncGenerator<SessionState> {
    const { store, ref, reach, signal } = this.#question;
    if (this.#own !== null) yield this.#own;
    if (reach === "self") return;
    let cursor: string | null = null;
    do {
      assertNotAborted(signal);
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

  async #scan(state: SessionState): Promise<void> {
    const { store, signal, limits } = this.#question;
    const isOwn = state.sessionId === this.#own?.sessionId;
    const records: StoredRecord[] = [];
    const left = limits.records - this.#records;
    const range = isOwn ? { beforeSeq: await this.#contextFrom(state) } : {};
    for await (const page of store.read(state.ref, { order: "descending", limit: left, signal, ...range })) {
      assertNotAborted(signal);
      for (const record of page.records) this.#bytes += record.bytes;
      records.push(...page.records);
      if (this.#bytes >= limits.bytes) break;
    }
    this.#records += records.length;
    if (this.#isFull()) this.#notes.add("older records were not searched");
    this.#add(state, records.toReversed());
  }

  async #readAround(candidates: readonly Candidate[]): Promise<void> {
    for (const span of spansAround(candidates)) {
      if (this.#isFull()) return;
      await this.#readSpan(span);
    }
  }

  /** Reads the records around some hits, and on to the message of the user before and behind them. */
  async #readSpan({ ref, sessionId, fromSeq, toSeq, firstHit, lastHit }: Span): Promise<void> {
    const { records } = this.#read.get(sessionId) ?? { records: new Map<number, StoredRecord>() };
    this.#read.set(sessionId, { session: { ref, sessionId }, records });
    const isOwn = sessionId === this.#own?.sessionId;
    const end = isOwn && this.#own !== null ? await this.#contextFrom(this.#own) : Infinity;
    const read = (from: number, to: number): Promise<number> => this.#readRecords(ref, records, [from, to + 1, end]);
    await read(fromSeq, toSeq);
    for (let from = fromSeq; from > 1 && fromSeq - from < mostBeyond && !hasUser(records, from, firstHit);)
      await read((from = Math.max(1, from - recordsBeyond)), fromSeq - 1);
    for (let to = toSeq; to - toSeq < mostBeyond && !hasUser(records, lastHit + 1, to);)
      if ((await read(to + 1, (to += recordsBeyond))) === 0) break;
  }

  /** Reads the records that are not known, and returns their number. */
  async #readRecords(
    ref: SessionRef,
    records: Map<number, StoredRecord>,
    [from, before, end]: readonly [number, number, number],
  ): Promise<number> {
    const { store, signal } = this.#question;
    let [afterSeq, beforeSeq] = [from - 1, Math.min(before, end)];
    while (afterSeq + 1 < beforeSeq && records.has(afterSeq + 1)) afterSeq += 1;
    while (afterSeq + 1 < beforeSeq && records.has(beforeSeq - 1)) beforeSeq -= 1;
    if (afterSeq + 1 >= beforeSeq) return Math.max(0, Math.min(before, end) - from);
    let count = 0;
    for await (const page of store.read(ref, { afterSeq, beforeSeq, signal })) {
      for (const record of page.records) {
        this.#bytes += record.bytes;
        records.set(record.seq, record);
      }
      count += page.records.length;
    }
    this.#records += count;
    return count;
  }

  #add(session: { readonly ref: SessionRef; readonly sessionId: string }, records: readonly StoredRecord[]): void {
    this.#episodes.push(...episodesOf(session, records, this.#question.toolName));
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

/** Stop words are in most records, and looking them up takes a fifth of the time. */
function wordsToLookUp(query: string): readonly string[] {
  const { words, names } = searchIndexText(query.slice(0, 2000));
  const all = [...new Set([...names.split(" "), ...words.split(" ")])].filter((word) => word !== "");
  const topics = all.filter((word) => !stopWords.has(word));
  let length = 0;
  return (topics.length > 0 ? topics : all)
    .toSorted((one, other) => other.length - one.length)
    .slice(0, mostWords)
    .filter((word) => (length += word.length) <= mostWordsLength);
}

function hasUser(records: ReadonlyMap<number, StoredRecord>, fromSeq: number, toSeq: number): boolean {
  for (let seq = fromSeq; seq <= toSeq; seq++) {
    const stored = records.get(seq);
    if (stored !== undefined && messageRole(stored.record) === "user") return true;
  }
  return false;
}

interface ReadRecords {
  readonly session: EpisodeSession;
  readonly records: Map<number, StoredRecord>;
}

interface Span {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly fromSeq: number;
  toSeq: number;
  readonly firstHit: number;
  lastHit: number;
}

/**
 * Overlapping surroundings are merged. The spans keep the order of their best candidate, so that a limit cuts off the
 * worst.
 */
function spansAround(candidates: readonly Candidate[]): readonly Span[] {
  const inOrder = candidates.toSorted((one, other) =>
    one.sessionId === other.sessionId ? one.seq - other.seq : one.sessionId < other.sessionId ? -1 : 1,
  );
  const spans: Span[] = [];
  for (const { ref, sessionId, seq } of inOrder) {
    const last = spans.at(-1);
    const toSeq = seq + recordsAround;
    if (last?.sessionId === sessionId && seq - recordsAround <= last.toSeq + 1)
      Object.assign(last, { toSeq, lastHit: seq });
    else {
      const fromSeq = Math.max(1, seq - recordsAround);
      spans.push({ ref, sessionId, fromSeq, toSeq, firstHit: seq, lastHit: seq });
    }
  }
  const rank = new Map(candidates.map(({ sessionId, seq }, index) => [`${sessionId} ${seq}`, index]));
  const bestIn = ({ sessionId, fromSeq, toSeq }: Span): number => {
    let best = Number.POSITIVE_INFINITY;
    for (let seq = fromSeq; seq <= toSeq; seq++) best = Math.min(best, rank.get(`${sessionId} ${seq}`) ?? best);
    return best;
  };
  return spans.toSorted((one, other) => bestIn(one) - bestIn(other));
}
