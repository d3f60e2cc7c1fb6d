import type { Steps } from "@throughline/core/internal";

/** Adds up what happened in a part of the time. */
interface AxisBucket {
  readonly fromMs: number;
  readonly toMs: number;
  prompts: number;
  replies: number;
  tools: number;
  errors: number;
  /** Counts the tokens that models wrote. */
  tokens: number;
  /** States how full the window was at last, in tokens; null while no reply says. */
  fillTokens: number | null;
}

/** Shows a session over time. No bucket covers a pause: the next one begins later than the one before ends. */
export interface DigestAxis {
  readonly fromMs: number;
  readonly toMs: number;
  /** Holds at most 600 buckets, in order. Those in which nothing happened are left out. */
  readonly buckets: readonly AxisBucket[];
}

/** Holds what a record adds to the axis. */
export interface AxisFact {
  readonly tsMs: number | null;
  readonly prompt: string | null;
  readonly isReply: boolean;
  readonly isError: boolean;
  readonly tools: number;
  readonly output: number;
  readonly fill: number | null;
}

const mostBuckets = 600;
/** A longer time without a record is a pause, which takes no place on the axis. */
const pauseMs = 5 * 60 * 1000;
const leastWidthMs = 1000;
const pointsOfStep = 2000;
/** Later times are outside of the calendar. */
const mostMs = 8.64e15;

/** Collects the records of an axis in their order. Times that go back count as the newest before them. */
export class AxisPoints {
  readonly #facts: AxisFact[] = [];
  readonly #times: number[] = [];
  #newestMs = -Infinity;

  add(fact: AxisFact): void {
    const { tsMs } = fact;
    if (tsMs !== null && Math.abs(tsMs) <= mostMs) this.#newestMs = Math.max(this.#newestMs, tsMs);
    if (this.#newestMs === -Infinity) return;
    this.#facts.push(fact);
    this.#times.push(this.#newestMs);
  }

  /** Returns null for records without any time. */
  *axis(): Steps<DigestAxis | null> {
    const fromMs = this.#times[0];
    const toMs = this.#times.at(-1);
    if (fromMs === undefined || toMs === undefined) return null;
    const { widthMs, longestMs } = yield* this.#scale();
    const buckets: AxisBucket[] = [];
    let runMs = fromMs;
    let beforeMs = fromMs;
    for (const [index, atMs] of this.#times.entries()) {
      if (index % pointsOfStep === 0) yield;
      if (atMs - beforeMs > longestMs) runMs = atMs;
      beforeMs = atMs;
      const startMs = runMs + Math.floor((atMs - runMs) / widthMs) * widthMs;
      let bucket = buckets.at(-1);
      if (bucket?.fromMs !== startMs) buckets.push((bucket = emptyBucket(startMs, widthMs)));
      addTo(bucket, this.#facts[index] as AxisFact);
    }
    return { fromMs, toMs, buckets };
  }

  /** Finds a width so that no more buckets than the most are needed. Each run between pauses begins with a new one. */
  *#scale(): Steps<{ readonly widthMs: number; readonly longestMs: number }> {
    for (let longestMs = pauseMs; ; longestMs *= 4) {
      let [activeMs, runs] = [0, 1];
      for (let index = 1; index < this.#times.length; index++) {
        if (index % pointsOfStep === 0) yield;
        const gapMs = (this.#times[index] ?? 0) - (this.#times[index - 1] ?? 0);
        if (gapMs > longestMs) runs += 1;
        else activeMs += gapMs;
      }
      if (runs > mostBuckets / 2) continue;
      return { widthMs: Math.max(leastWidthMs, Math.ceil(activeMs / (mostBuckets - runs))), longestMs };
    }
  }
}

function emptyBucket(fromMs: number, widthMs: number): AxisBucket {
  const toMs = fromMs + widthMs;
  return { fromMs, toMs, prompts: 0, replies: 0, tools: 0, errors: 0, tokens: 0, fillTokens: null };
}

function addTo(bucket: AxisBucket, { prompt, isReply, isError, tools, output, fill }: AxisFact): void {
  bucket.prompts += prompt === null ? 0 : 1;
  bucket.replies += isReply ? 1 : 0;
  bucket.errors += isError ? 1 : 0;
  bucket.tools += tools;
  bucket.tokens += output;
  bucket.fillTokens = fill ?? bucket.fillTokens;
}
