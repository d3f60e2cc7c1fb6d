import { createEntryLease, createSummaryRetry, type RetryOutcome, runRetryLoop } from "@throughline/compaction";
import { tokenMeasure } from "@throughline/compaction/internal";
import type { Clock, RecordIds, SessionRef, SessionStore, Summarizer } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { emptyCalibration, type TokenEstimator } from "@throughline/tokens";
import type { SessionModel } from "../session-options.ts";
import type { RetrySettings } from "./whole-turn-options.ts";
import { readLearning } from "../session-learning.ts";
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
  /** Of this process. */
  readonly owner: string;
  readonly listener: WholeTurnListener | null;
  /** The sessions that are open. */
  readonly sessions: () => readonly SessionRef[];
  readonly onImproved: (ref: SessionRef) => Promise<void>;
}

/** Makes poor summaries of the open sessions again, at once and then in intervals, until it is stopped. */
export class SummaryRetries {
  readonly #options: SummaryRetriesOptions;
  readonly #stopping = new AbortController();
  readonly #refreshes = new Set<Promise<void>>();
  #loop: Promise<void> | null = null;

  constructor(options: SummaryRetriesOptions) {
    this.#options = options;
  }

  /** Begins with the first session that is opened; does nothing later, or where nobody could do better. */
  start(): void {
    const { settings, summarizers } = this.#options;
    if (this.#loop !== null || summarizers.length === 0 || settings.intervalSeconds === 0) return;
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await Promise.all(this.#refreshes);
  }

  async #run(): Promise<void> {
    const { store, clock, ids, summarizers, maxSummaryTokens, estimator, model, settings, owner } = this.#options;
    const { listener, toolResultChars } = this.#options;
    const { intervalSeconds, ...limits } = settings;
    const counter = await estimator.counterFor({ provider: model.chat.provider, modelId: model.modelId });
    const retry = createSummaryRetry({
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
    await runRetryLoop({
      retry,
      clock,
      ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
      sessions: this.#options.sessions,
      onOutcome: (ref, outcome) => this.#onOutcome(ref, outcome),
      onError: (ref, cause) => tellListener(listener, { name: "retry.error", ref, cause }),
      signal: this.#stopping.signal,
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
