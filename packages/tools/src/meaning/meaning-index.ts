import { setImmediate as pause } from "node:timers/promises";
import {
  type Clock,
  type Embedder,
  hasErrorCode,
  type SessionRef,
  type SessionStore,
  type VectorsFacet,
} from "@throughline/core";
import {
  causeText,
  Deadline,
  isKeyMissing,
  type PendingRange,
  systemClock,
  type TextVector,
  untilAborted,
  type VectorScope,
} from "@throughline/core/internal";
import type { MeaningAnswer, MeaningQuestion, MeaningSearch } from "../search/meaning-search.ts";
import { embedUnits } from "./embed-units.ts";
import { estimateTokens } from "./meaning-units.ts";
import { nextBatch, type PendingBatch } from "./pending-batch.ts";
import type { TokenBudget } from "./token-budget.ts";

/** Runs calls of an embedder, and refuses them for a while after several failures in a row. */
export type EmbedderBreaker = <Result>(
  name: string,
  work: () => Promise<Result>,
  signal: AbortSignal | null,
) => Promise<Result>;

export interface MeaningIndexOptions {
  readonly store: SessionStore;
  readonly vectors: VectorsFacet;
  /** Names the sessions that are filled. A search names its own. */
  readonly scope: VectorScope;
  readonly embedder: Embedder;
  /** Answers while the vectors of `embedder` are not complete. @default none */
  readonly before?: Embedder | null;
  readonly budget: TokenBudget;
  /** @default each call is made */
  readonly breaker?: EmbedderBreaker;
  readonly clock?: Clock;
  /** Receives a sentence when the filling stops, and why. @default nothing receives it */
  readonly onNote?: (message: string) => void;
}

/** States what a backfill would cost. */
export interface BackfillEstimate {
  readonly records: number;
  readonly tokens: number;
}

/** A burst of writes is over after this time without one. */
const quietMs = 1000;
/** After a failure the filling is tried again, at the earliest after this time. */
const retryMs = 60_000;
/** A question waits this long for its vector. Words take less than a second. */
const questionMs = 1500;
const rangesAtOnce = 1000;
/** A list of what is pending is renewed after this time, because the newest sessions come first. */
const listLifeMs = 10_000;
/** A question counts what is missing of its sessions among this many ranges. */
const countedRanges = 1000;
/** An estimate reads at most this many ranges. */
const sampledRanges = 5;
/** A search by meaning adds this many places to those that words find. */
const usualHits = 40;
const mostHits = 200;

/** Fills the vectors of a store behind its log, and finds the nearest ones. */
export class MeaningIndex implements MeaningSearch {
  readonly #options: MeaningIndexOptions;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #filling: Promise<void> | null = null;
  #isPoked = false;
  #lastNote = "";

  constructor(options: MeaningIndexOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get embedderId(): string {
    return this.#options.embedder.id;
  }

  /** Starts to fill once no record was written for a second. It returns at once, and no write waits for it. */
  poke(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#filling !== null) this.#isPoked = true;
    else this.#startIn(quietMs);
  }

  /** Counts the records that have no vectors yet. */
  async lag(): Promise<number> {
    const { vectors, scope, embedder } = this.#options;
    return (await vectors.pending(scope, { model: embedder.id, limit: 1 })).records;
  }

  /** Estimates a backfill from some of its records, without asking the embedder. */
  async estimate(signal: AbortSignal): Promise<BackfillEstimate> {
    const { vectors, store, scope, embedder } = this.#options;
    const { ranges, records } = await vectors.pending(scope, { model: embedder.id, limit: sampledRanges, signal });
    let [seen, tokens] = [0, 0];
    for (const range of ranges) {
      const batch = await nextBatch(store, range, this.#batchOptions(signal));
      if (batch === null) continue;
      seen += batch.toSeq - Math.max(batch.fromSeq, range.coveredSeq + 1) + 1;
      tokens += estimateTokens(batch.units);
    }
    return { records, tokens: seen === 0 ? 0 : Math.ceil((tokens / seen) * records) };
  }

  /**
   * Adds the vectors that are missing, and yields the number of records left after each batch. It ends early when the tokens of the
   * day are used up. A session whose key is missing is left out until the others are filled.
   * @throws {ThroughlineError} what the store and the embedder throw, ABORTED
   */
  async *fill(signal: AbortSignal = this.#closing.signal): AsyncGenerator<number> {
    const { vectors, scope, embedder } = this.#options;
    for (;;) {
      const { ranges, records, hasOthers } = await vectors.pending(scope, {
        model: embedder.id,
        limit: rangesAtOnce,
        signal,
      });
      // The vectors of another model answer until these are complete.
      if (records === 0 && hasOthers) await vectors.forget(scope, { keep: embedder.id });
      yield records;
      let left = records;
      const listedMs = this.#clock.nowMs();
      const keyless: unknown[] = [];
      // A store looks at every session to say what is pending, so a list is worked off before the next is asked for.
      for (const range of ranges) {
        // Ranges of open turns give nothing, and those behind them are still tried.
        if (left < records && this.#clock.nowMs() - listedMs >= listLifeMs) break;
        for await (const filled of this.#fillReadable(range, keyless, signal)) {
          if (filled === "no budget") return;
          left -= filled;
          if (left > 0) yield left;
          if (this.#clock.nowMs() - listedMs >= listLifeMs) break;
        }
      }
      if (left < records) continue;
      if (keyless.length > 0) throw keyless[0];
      return;
    }
  }

  async nearest(question: MeaningQuestion): Promise<MeaningAnswer> {
    const { vectors, embedder, before = null } = this.#options;
    const { ref, isWanted, limit = usualHits, signal } = question;
    try {
      const missing = await this.#missing(question);
      const used = missing > 0 && before !== null ? before : embedder;
      const vector = await this.#questionVector(used, question.text, signal);
      const { namespace, agentId } = ref;
      const key = question.reach === "self" ? { key: ref.key } : {};
      const found = await vectors.nearest({
        namespace,
        agentId,
        ...key,
        model: used.id,
        vector,
        state: "active",
        limit: isWanted === undefined ? limit : mostHits,
        signal,
      });
      const hits = await wantedOf(found, isWanted);
      const isComplete = missing === 0 || used === before;
      return {
        hits: hits.slice(0, limit),
        notes: isComplete ? [] : [`${missing} records have no vector yet and were compared by words only`],
      };
    } catch (error) {
      if (signal.aborted) throw error;
      return { hits: [], notes: [`only words were compared: ${causeText(error)}`], failure: error };
    }
  }

  /** Ends the filling. Vectors of a batch that is under way are not stored. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#filling;
  }

  #startIn(delayMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    // The timer does not keep the process alive, because the next process can fill the vectors.
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#filling = this.#fillBehind().finally(() => {
        this.#filling = null;
        if (this.#isPoked) this.poke();
        this.#isPoked = false;
      });
    }, delayMs).unref();
  }

  async #fillBehind(): Promise<void> {
    try {
      for await (const _left of this.fill()) if (this.#closing.signal.aborted) return;
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const message = `Vectors for search by meaning are not filled at the moment: ${causeText(error)}`;
      // The same failure is reported once, not every minute.
      if (message !== this.#lastNote) this.#options.onNote?.(message);
      this.#lastNote = message;
      this.#startIn(Math.max(retryMs, retryAfterOf(error)));
    }
  }

  /** Fills a range, and keeps the error of a missing key: the other sessions go on. */
  async *#fillReadable(
    range: PendingRange,
    keyless: unknown[],
    signal: AbortSignal,
  ): AsyncGenerator<number | "no budget"> {
    try {
      yield* this.#fillRange(range, signal);
    } catch (error) {
      if (!isKeyMissing(error)) throw error;
      keyless.push(error);
    }
  }

  /** Fills a range batch by batch, and yields how many records each took. */
  async *#fillRange(range: PendingRange, signal: AbortSignal): AsyncGenerator<number | "no budget"> {
    const { vectors, store, embedder, budget } = this.#options;
    let rest = range;
    while (rest.coveredSeq < rest.toSeq) {
      // Not every store and embedder answers in a later turn of the loop.
      await pause();
      const batch = await nextBatch(store, rest, this.#batchOptions(signal));
      if (batch === null) return;
      if (!budget.take(estimateTokens(batch.units))) return yield "no budget";
      const found = await this.#vectorsOf(batch, signal);
      const { fromSeq, toSeq, resumeSeq, mark } = batch;
      const put = { model: embedder.id, mark, fromSeq, toSeq, resumeSeq, vectors: found };
      const isPut = await vectors.put(range.ref, put, { signal });
      yield toSeq - rest.coveredSeq;
      // A batch that a removal has overtaken is thrown away, and its records are pending as before.
      if (!isPut) return;
      rest = { ...rest, fromSeq: resumeSeq, coveredSeq: toSeq };
    }
  }

  async #vectorsOf({ units }: PendingBatch, signal: AbortSignal): Promise<readonly TextVector[]> {
    const { embedder, breaker } = this.#options;
    if (units.length === 0) return [];
    const work = (): Promise<readonly TextVector[]> => embedUnits(embedder, units, signal);
    return breaker === undefined ? work() : breaker(embedder.id, work, signal);
  }

  #batchOptions(signal: AbortSignal): Parameters<typeof nextBatch>[2] {
    const { embedder } = this.#options;
    return { maxTokens: embedder.maxTokens, nowMs: this.#clock.nowMs(), signal };
  }

  /** Counts the searched records without vectors. What the context of the caller holds is not searched. */
  async #missing({ ref, reach, contextFromSeq, isWanted, signal }: MeaningQuestion): Promise<number> {
    const { namespace, agentId } = ref;
    const query = { model: this.#options.embedder.id, limit: countedRanges, signal };
    const pending = await this.#options.vectors.pending({ namespace, agentId }, query);
    const ranges = await wantedOf(pending.ranges, isWanted);
    const records = isWanted === undefined ? pending.records : recordsIn(ranges);
    const own = ranges.filter((range) => range.ref.key === ref.key && range.ref.archiveId === ref.archiveId);
    const searched = own.reduce(
      (sum, { coveredSeq, toSeq }) => sum + Math.max(0, Math.min(toSeq, contextFromSeq - 1) - coveredSeq),
      0,
    );
    return reach === "self" ? searched : records - recordsIn(own) + searched;
  }

  async #questionVector(embedder: Embedder, text: string, signal: AbortSignal): Promise<Float32Array> {
    const { breaker } = this.#options;
    await using deadline = new Deadline(this.#clock, questionMs, signal);
    const work = async (): Promise<Float32Array> => {
      const asked = embedder.embed([text.slice(0, embedder.maxTokens * 3)], { kind: "query", signal: deadline.signal });
      const [vector] = await untilAborted(asked, deadline.signal);
      if (vector === undefined) throw new TypeError("The embedder gave no vector for the question.");
      return vector;
    };
    try {
      // A server that is too slow for a question may still fill, so its late answers do not stop the filling.
      return await (breaker === undefined ? work() : breaker(`${embedder.id} (questions)`, work, signal));
    } catch (error) {
      if (!deadline.isOver) throw error;
      throw new Error(`${embedder.id} gave no vector within ${questionMs} ms.`, { cause: error });
    }
  }
}

async function wantedOf<Found extends { readonly ref: SessionRef; readonly sessionId: string }>(
  found: readonly Found[],
  isWanted: MeaningQuestion["isWanted"],
): Promise<readonly Found[]> {
  if (isWanted === undefined) return found;
  const wanted: Found[] = [];
  for (const each of found) if (await isWanted(each.ref, each.sessionId)) wanted.push(each);
  return wanted;
}

function recordsIn(ranges: readonly PendingRange[]): number {
  return ranges.reduce((sum, { coveredSeq, toSeq }) => sum + toSeq - coveredSeq, 0);
}

function retryAfterOf(error: unknown): number {
  if (!hasErrorCode(error, "EMBEDDING_FAILED", "SUMMARIZER_PAUSED")) return 0;
  const { retryAfterMs, retryInMs } = error.details as Readonly<Record<string, unknown>>;
  return Number(retryAfterMs ?? retryInMs ?? 0) || 0;
}
