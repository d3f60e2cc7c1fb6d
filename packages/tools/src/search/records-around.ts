import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import { messageRole } from "@throughline/core/internal";
import { episodesOf, type Episode, type EpisodeSession } from "./episodes.ts";

/** Names a record that an index found. */
export interface Candidate {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly seq: number;
}

/** Sets where records are read. */
export interface SurroundingsOptions {
  /** Returns the store that holds a session. */
  readonly storeOf: (ref: SessionRef) => SessionStore;
  /** Returns the seq from which on a session is not read. @default the whole session is read */
  readonly endOf?: (sessionId: string) => Promise<number>;
  /** Limits the bytes that are read. @default 3 MB, after which no further candidates are wanted */
  readonly mostBytes?: number;
  /** Limits the records that are read. @default no limit */
  readonly mostRecords?: number;
  /** Returns the signal that aborts the reading. */
  readonly signal: () => AbortSignal;
}

/**
 * The index ranks single records, and the ranking of episodes then puts the answer first. Among 200,000 records a hundred
 * hits hold less of the evidence than 400.
 */
export const mostCandidates = 400;
/** Records this close to a hit usually belong to the same exchange. */
const recordsAround = 4;
/** An exchange with many calls of tools begins and ends farther away, so this number of records is read at a time. */
const recordsBeyond = 12;
const mostBeyond = 24;
/**
 * The search ends after this number of candidates, or a multiple of it, once it has read enough. Of answers of 500 words,
 * the first hundred candidates hold 98.6 % of the evidence, and all 400 would take twice the time.
 */
const candidatesAtOnce = 100;
const enoughBytes = 3_000_000;

/** Reads the exchanges around candidates, which arrive with the best one first. */
export class RecordsAround {
  readonly #options: SurroundingsOptions;
  /** Holds the records around the candidates by session and seq. */
  readonly #read = new Map<string, ReadRecords>();
  #waiting: Candidate[] = [];
  #candidates = 0;
  #records = 0;
  #bytes = 0;

  constructor(options: SurroundingsOptions) {
    this.#options = options;
  }

  get recordCount(): number {
    return this.#records;
  }

  /** Takes the next candidate, and returns whether more are wanted. */
  async add({ ref, sessionId, seq }: Candidate): Promise<boolean> {
    this.#waiting.push({ ref, sessionId, seq });
    if (++this.#candidates % candidatesAtOnce !== 0) return true;
    await this.#readWaiting();
    return this.#candidates < mostCandidates && this.#bytes < enoughBytes;
  }

  /** Reads what is still to be read, and returns all episodes in the order of their sessions. */
  async episodes(): Promise<readonly Episode[]> {
    await this.#readWaiting();
    return [...this.#read.values()].flatMap(({ session, records }) =>
      episodesOf(
        session,
        [...records.values()].toSorted((one, other) => one.seq - other.seq),
      ),
    );
  }

  async #readWaiting(): Promise<void> {
    const { mostBytes = Infinity, mostRecords = Infinity } = this.#options;
    const spans = spansAround(this.#waiting);
    this.#waiting = [];
    for (const span of spans) {
      // A store may read a few records without a turn of the event loop, and a hundred such reads would hold it.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#records >= mostRecords || this.#bytes >= mostBytes) return;
      try {
        await this.#readSpan(span);
      } catch (error) {
        // Another process removed or archived the session after the index answered.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      }
    }
  }

  /** Reads the records around some hits, and on to the message of the user before and behind them. */
  async #readSpan({ ref, sessionId, fromSeq, toSeq, firstHit, lastHit }: Span): Promise<void> {
    const { records } = this.#read.get(sessionId) ?? { records: new Map<number, StoredRecord>() };
    this.#read.set(sessionId, { session: { ref, sessionId }, records });
    const end = (await this.#options.endOf?.(sessionId)) ?? Infinity;
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
    let [afterSeq, beforeSeq] = [from - 1, Math.min(before, end)];
    while (afterSeq + 1 < beforeSeq && records.has(afterSeq + 1)) afterSeq += 1;
    while (afterSeq + 1 < beforeSeq && records.has(beforeSeq - 1)) beforeSeq -= 1;
    if (afterSeq + 1 >= beforeSeq) return Math.max(0, Math.min(before, end) - from);
    let count = 0;
    const { storeOf, signal } = this.#options;
    for await (const page of storeOf(ref).read(ref, { afterSeq, beforeSeq, signal: signal() })) {
      for (const record of page.records) {
        this.#bytes += record.bytes;
        records.set(record.seq, record);
      }
      count += page.records.length;
    }
    this.#records += count;
    return count;
  }
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
