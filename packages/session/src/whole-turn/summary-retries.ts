import {
  createEntryLease,
  createSummaryRetry,
  type RetryOutcome,
  runRetryLoop,
  type SummaryRetry,
  tokenMeasure,
} from "@throughline/compaction/internal";
import type { Clock, RecordIds, SessionRef, SessionStore, Summarizer } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { emptyCalibration, type TokenEstimator } from "@throughline/tokens";
import type { SessionModel } from "../session-options.ts";
import type { RetrySettings } from "./whole-turn-options.ts";
import { readLearning } from "../session-learning.ts";
import { keyOf } from "./turn-memory.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

export interface SummaryRetriesOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly summarizers: readonly Summarizer[];
  readonly maxSummaryTokens: number | undefined;
  readonly toolResultChars: number | undefined;
  readonly estimator: TokenEstimator;
  readonly model: SessionModel;
  readonly settings: RetrySettings;
  /** Names this process in the lease. */
  readonly owner: string;
  readonly listener: WholeTurnListener | null;
  readonly sessions: () => readonly SessionRef[];
  readonly onImproved: (ref: SessionRef) => Promise<void>;
}

/** Rewrites poor summaries of the open sessions, once when a session is opened and then in intervals. */
export class SummaryRetries {
  readonly #options: SummaryRetriesOptions;
  readonly #stopping = new AbortController();
  readonly #refreshes = new Set<Promise<void>>();
  readonly #running = new Set<string>();
  readonly #opened = new Set<Promise<void>>();
  #retry: Promise<SummaryRetry> | null = null;
  #loop: Promise<void> | null = null;

  constructor(options: SummaryRetriesOptions) {
    this.#options = options;
  }

  /** Does nothing without summarizers, because no better summary is possible then. */
  start(ref: SessionRef): void {
    const { settings, summarizers } = this.#options;
    if (summarizers.length === 0 || settings.intervalSeconds === 0 || this.#stopping.signal.aborted) return;
    // The first pass of the loop covers all open sessions, this one included.
    if (this.#loop === null) this.#loop = this.#run();
    else this.#runSoon(ref);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#loop, ...this.#opened]);
    await Promise.all(this.#refreshes);
  }

  #runSoon(ref: SessionRef): void {
    const work = this.#runOne(ref).finally(() => this.#opened.delete(work));
    this.#opened.add(work);
  }

  async #runOne(ref: SessionRef): Promise<void> {
    const { signal } = this.#stopping;
    try {
      const retry = await (this.#retry ??= this.#createRetry());
      for (const outcome of await this.#once(retry).run(ref, { signal })) this.#onOutcome(ref, outcome);
    } catch (cause) {
      if (!signal.aborted) tellListener(this.#options.listener, { name: "retry.error", ref, cause });
    }
  }

  async #run(): Promise<void> {
    const { clock, settings, listener } = this.#options;
    const { intervalSeconds } = settings;
    const retry = await (this.#retry ??= this.#createRetry());
    await runRetryLoop({
      retry: this.#once(retry),
      clock,
      ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
      sessions: this.#options.sessions,
      onOutcome: (ref, outcome) => this.#onOutcome(ref, outcome),
      onError: (ref, cause) => tellListener(listener, { name: "retry.error", ref, cause }),
      signal: this.#stopping.signal,
    });
  }

  /** A session has one pass at a time. The lease excludes other processes, but not this one. */
  #once(retry: SummaryRetry): SummaryRetry {
    return {
      run: async (ref, options) => {
        const key = keyOf(ref);
        if (this.#running.has(key)) return [];
        this.#running.add(key);
        try {
          return await retry.run(ref, options);
        } finally {
          this.#running.delete(key);
        }
      },
    };
  }

  async #createRetry(): Promise<SummaryRetry> {
    const { store, clock, ids, summarizers, maxSummaryTokens, estimator, model, settings, owner } = this.#options;
    const { listener, toolResultChars } = this.#options;
    const { intervalSeconds: _interval, ...limits } = settings;
    const counter = await estimator.counterFor({ provider: model.chat.provider, modelId: model.modelId });
    return createSummaryRetry({
      store,
      clock,
      ids,
      summarizers,
      measure: tokenMeasure(counter, emptyCalibration),
      measureFor: (entry) => tokenMeasure(counter, readLearning(entry).calibration),
      lease: createEntryLease({ store, clock, owner }),
      ...(maxSummaryTokens === undefined ? {} : { maxSummaryTokens }),
      ...(toolResultChars === undefined ? {} : { toolResultChars }),
      ...(listener === null ? {} : { onEvent: (event) => tellListener(listener, event) }),
      ...limits,
    });
  }

  #onOutcome(ref: SessionRef, { kind }: RetryOutcome): void {
    if (kind !== "improved") return;
    const refresh = this.#options
      .onImproved(ref)
      .catch((cause: unknown) => tellListener(this.#options.listener, { name: "retry.error", ref, cause }))
      .finally(() => this.#refreshes.delete(refresh));
    this.#refreshes.add(refresh);
  }
}
