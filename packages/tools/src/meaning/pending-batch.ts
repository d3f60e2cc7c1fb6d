import type { SessionStore, StoredRecord } from "@throughline/core";
import type { PendingRange } from "@throughline/core/internal";
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
 * would be embedded again each time. Returns null when nothing else is left.
 */
export async function nextBatch(
  store: SessionStore,
  range: PendingRange,
  options: BatchOptions,
): Promise<PendingBatch | null> {
  const state = await store.load(range.ref, { signal: options.signal });
  if (state === null || state.sessionId !== range.sessionId) return null;
  const { turn, lastSeq } = state.head;
  const isOpen = turn !== null && turn.leaseUntilMs > options.nowMs && range.toSeq === lastSeq;
  const { records, isAll } = await readRange(store, range, options);
  const read = records.at(-1)?.seq ?? range.toSeq;
  const found = episodesOf({ ref: range.ref, sessionId: range.sessionId }, records);
  const isCut = !isAll || isOpen;
  // A session of one endless exchange is cut all the same, as soon as more follows.
  const episodes = isCut && (found.length > 1 || isOpen) ? found.slice(0, -1) : found;
  const toSeq = isCut ? (episodes.at(-1)?.lastSeq ?? (isOpen ? 0 : read)) : range.toSeq;
  if (toSeq <= range.coveredSeq) return null;
  const changed = episodes.filter((episode) => episode.lastSeq > range.coveredSeq);
  return {
    mark: range.mark,
    fromSeq: Math.min(changed[0]?.firstSeq ?? Infinity, range.coveredSeq + 1),
    toSeq,
    resumeSeq: resumeAt(episodes, range, toSeq),
    units: changed.flatMap((episode) => unitsOf(episode, options.maxTokens)),
  };
}

/** An exchange at the end may grow. */
function resumeAt(episodes: readonly Episode[], range: PendingRange, toSeq: number): number {
  return Math.min(episodes.at(-1)?.firstSeq ?? range.fromSeq, toSeq);
}

/** Reads the records of a range until they have enough texts. */
async function readRange(
  store: SessionStore,
  { ref, fromSeq, toSeq }: PendingRange,
  { maxTokens, signal }: BatchOptions,
): Promise<{ readonly records: readonly StoredRecord[]; readonly isAll: boolean }> {
  const records: StoredRecord[] = [];
  let units = 0;
  for await (const page of store.read(ref, { afterSeq: fromSeq - 1, beforeSeq: toSeq + 1, signal })) {
    for (const record of page.records) {
      records.push(record);
      const alone = episodesOf({ ref, sessionId: "" }, [record]);
      units += alone.reduce((sum, episode) => sum + unitsOf(episode, maxTokens).length, 0);
      const isEnough = units >= batchUnits || records.length >= mostRecords;
      if (isEnough && record.seq < toSeq) return { records, isAll: false };
    }
  }
  return { records, isAll: true };
}
