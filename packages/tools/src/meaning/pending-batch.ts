import { hasErrorCode, type SessionState, type SessionStore, type StoredRecord } from "@throughline/core";
import { isLostPayload, type PendingRange } from "@throughline/core/internal";
import { episodesOf, type Episode } from "../search/episodes.ts";
import { type MeaningUnit, unitsOf } from "./meaning-units.ts";

/** Holds the next texts of a range, and what a put of their vectors states. */
export interface PendingBatch extends Pick<PendingRange, "fromSeq" | "toSeq" | "mark"> {
  readonly resumeSeq: number;
  readonly units: readonly MeaningUnit[];
}

export interface BatchOptions {
  readonly maxTokens: number;
  /** States the time by which a turn whose lease is over has ended. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** A batch has about this many texts, whatever a request to the embedder holds. */
const batchUnits = 64;
/** An exchange that was read in part would get a vector for each part, so more is read before a batch is cut. */
const mostRecords = 1000;

/**
 * Reads the next texts of a range. The last exchange of a session with an open turn is left, because it grows with every step and
 * would be embedded again each time. Erased and damaged records count as done, without a vector. Returns null when nothing else is
 * left.
 */
export async function nextBatch(
  store: SessionStore,
  range: PendingRange,
  options: BatchOptions,
): Promise<PendingBatch | null> {
  const state = await stateOf(store, range, options);
  const { mark, coveredSeq } = range;
  if (state === "lost") return { mark, fromSeq: coveredSeq + 1, toSeq: range.toSeq, resumeSeq: range.toSeq, units: [] };
  if (state === null || state.sessionId !== range.sessionId) return null;
  const { turn, lastSeq } = state.head;
  const isOpen = turn !== null && turn.leaseUntilMs > options.nowMs && range.toSeq === lastSeq;
  const read = await readRange(store, range, options);
  const { episodes, toSeq } = wholeEpisodes(range, read, isOpen);
  if (toSeq <= coveredSeq) return null;
  const changed = episodes.filter((episode) => episode.lastSeq > coveredSeq);
  return {
    mark,
    fromSeq: Math.min(changed[0]?.firstSeq ?? Infinity, coveredSeq + 1),
    toSeq,
    resumeSeq: resumeAt(episodes.at(-1), read, toSeq),
    units: changed.flatMap((episode) => unitsOf(episode, options.maxTokens)),
  };
}

async function stateOf(
  store: SessionStore,
  { ref }: PendingRange,
  { signal }: BatchOptions,
): Promise<SessionState | "lost" | null> {
  try {
    return await store.load(ref, { signal });
  } catch (error) {
    if (isUnreadable(error)) return "lost";
    throw error;
  }
}

/** Returns the exchanges that a batch takes, and the seq up to which it is done. */
function wholeEpisodes(
  { ref, sessionId, toSeq, coveredSeq }: PendingRange,
  { records, readSeq, isAll }: ReadRange,
  isOpen: boolean,
): { readonly episodes: readonly Episode[]; readonly toSeq: number } {
  const found = episodesOf({ ref, sessionId }, records);
  if (isAll && !isOpen) return { episodes: found, toSeq };
  const episodes = found.slice(0, -1);
  const wholeSeq = episodes.at(-1)?.lastSeq ?? 0;
  // A session of one endless exchange, or without texts, is cut all the same, as soon as more follows.
  return isAll || wholeSeq > coveredSeq ? { episodes, toSeq: wholeSeq } : { episodes: found, toSeq: readSeq };
}

/** An exchange at the end may grow, unless what follows it was skipped, or has no text for a whole batch. */
function resumeAt(last: Episode | undefined, { skippedSeq, isAll }: ReadRange, toSeq: number): number {
  if (last === undefined || (!isAll && toSeq > last.lastSeq)) return toSeq;
  return skippedSeq > last.lastSeq && skippedSeq <= toSeq ? toSeq : last.firstSeq;
}

interface ReadRange {
  readonly records: readonly StoredRecord[];
  /** States the seq of the last record that was read or skipped. */
  readonly readSeq: number;
  /** States the seq of the last record that was skipped; 0 without one. */
  readonly skippedSeq: number;
  readonly isAll: boolean;
}

/** Reads the records of a range until they have enough texts. */
async function readRange(store: SessionStore, range: PendingRange, options: BatchOptions): Promise<ReadRange> {
  const { ref, toSeq } = range;
  const records: StoredRecord[] = [];
  let [units, count, skippedSeq] = [0, 0, 0];
  for await (const record of readableRecords(store, range, options.signal)) {
    const seq = typeof record === "number" ? record : record.seq;
    if (typeof record === "number") skippedSeq = record;
    else {
      records.push(record);
      const alone = episodesOf({ ref, sessionId: "" }, [record]);
      units += alone.reduce((sum, episode) => sum + unitsOf(episode, options.maxTokens).length, 0);
    }
    count += 1;
    const isEnough = units >= batchUnits || count >= mostRecords;
    if (isEnough && seq < toSeq) return { records, readSeq: seq, skippedSeq, isAll: false };
  }
  return { records, readSeq: toSeq, skippedSeq, isAll: true };
}

/** After a record that cannot be read, this many are asked for, and then fewer, until it is found. */
const narrowRecords = 64;

/** Yields each record of a range, and the seq of one that is erased or damaged: a page with it fails as a whole. */
async function* readableRecords(
  store: SessionStore,
  { ref, fromSeq, toSeq }: PendingRange,
  signal: AbortSignal,
): AsyncGenerator<StoredRecord | number> {
  let width = Infinity;
  for (let next = fromSeq; next <= toSeq;) {
    const beforeSeq = Math.min(next + width, toSeq + 1);
    try {
      for await (const { records } of store.read(ref, { afterSeq: next - 1, beforeSeq, signal }))
        for (const record of records) {
          yield record;
          next = record.seq + 1;
        }
      next = Math.max(next, beforeSeq);
      width *= 4;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      if (width === 1) yield next++;
      else width = Math.min(width / 4, narrowRecords);
    }
  }
}

function isUnreadable(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT") || isLostPayload(error);
}
