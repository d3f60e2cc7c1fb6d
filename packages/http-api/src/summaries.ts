import { createCheckpointer, summarizerCheckpointWriter } from "@throughline/checkpoint";
import type { Checkpointer } from "@throughline/checkpoint/internal";
import type { CheckpointWriter } from "@throughline/checkpoint";
import { type CompactionSettings, type Compactor, createCompactor } from "@throughline/compaction";
import type { RetryLimits } from "@throughline/compaction/internal";
import type { Clock, SessionStore, Summarizer } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { createTokenEstimator, type TokenEstimator } from "@throughline/tokens";
import { createSummaryRetries, type SummaryRetries } from "./summary-retries.ts";

/** Configures who writes summaries and checkpoints, and when. */
export interface SummaryOptions {
  /**
   * Lists the summarizers in the order in which they are tried. @default none: summaries are extracted by rules,
   * without a model
   */
  readonly summarizers?: readonly Summarizer[];
  /** Lists the writers of checkpoints in the order in which they are tried. @default the rules */
  readonly writers?: readonly CheckpointWriter[];
  /** Sets when a session is compacted, and what of it is kept. */
  readonly compaction?: CompactionSettings & {
    /** Uses a checkpoint that covers half of the context instead of asking a model. @default true */
    readonly preferCheckpoint?: boolean;
    /** Limits all summarizers of one compaction together, in milliseconds. @default 180000 */
    readonly deadlineMs?: number;
  };
  /** Sets when a summary without a model is repeated with a later turn; null disables that. */
  readonly retry?: RetryLimits | null;
}

export interface Summaries {
  /** Says when a session is compacted. */
  readonly settings: CompactionSettings;
  readonly compactor: Compactor;
  /** Returns a compactor whose record gets this id, so that a repeated request finds the record. */
  compactorOf(recordId: string): Compactor;
  readonly checkpointer: Checkpointer;
  readonly retries: SummaryRetries;
  /** Is shared by all requests, so that each vocabulary is loaded once. */
  readonly estimator: TokenEstimator;
  /** Runs the work of a session once: callers with the same name share the running work and its result. */
  once<Result>(what: string, work: () => Promise<Result>): Promise<Result>;
}

/**
 * Creates one compactor and one checkpointer for all views of a store, so that concurrent requests for a session share
 * the work.
 */
export function createSummaries(
  store: SessionStore,
  clock: Clock,
  options: SummaryOptions = {},
  onRetryError: (error: unknown) => void = () => {},
): Summaries {
  const extractive = createExtractiveSummarizer();
  const { summarizers = [], writers = [summarizerCheckpointWriter(extractive, "extractive")], compaction } = options;
  const { preferCheckpoint, deadlineMs, ...settings } = compaction ?? {};
  const compactorOptions = {
    store,
    clock,
    summarizers,
    extractive,
    settings,
    ...(preferCheckpoint === undefined ? {} : { preferCheckpoint }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  };
  const owner = `server ${systemRandom.uuid()}`;
  const running = new Map<string, Promise<unknown>>();
  const estimator = createTokenEstimator();
  return {
    settings,
    estimator,
    async once<Result>(what: string, work: () => Promise<Result>) {
      // The cast is safe: the same name always stands for the same work.
      const found = running.get(what) as Promise<Result> | undefined;
      if (found !== undefined) return found;
      const made = work().finally(() => running.delete(what));
      running.set(what, made);
      return made;
    },
    compactor: createCompactor(compactorOptions),
    compactorOf: (recordId) => createCompactor({ ...compactorOptions, ids: { next: () => recordId } }),
    retries: createSummaryRetries({
      store,
      clock,
      summarizers,
      estimator,
      owner,
      limits: options.retry === undefined ? {} : options.retry,
      maxSummaryTokens: settings.maxSummaryTokens,
      toolResultChars: settings.toolResultChars,
      onError: onRetryError,
    }),
    checkpointer: createCheckpointer({ store, clock, writers, owner }),
  };
}
