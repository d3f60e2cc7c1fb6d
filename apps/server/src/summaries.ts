import { createCheckpointer, summarizerCheckpointWriter } from "@throughline/checkpoint";
import type { Checkpointer } from "@throughline/checkpoint/internal";
import type { CheckpointWriter } from "@throughline/checkpoint";
import { type CompactionSettings, type Compactor, createCompactor } from "@throughline/compaction";
import { type RetryLimits } from "@throughline/compaction/internal";
import type { Clock, SessionStore, Summarizer } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers";
import { createTokenEstimator, type TokenEstimator } from "@throughline/tokens";
import { createSummaryRetries, type SummaryRetries } from "./summary-retries.ts";

/** Who writes the summaries that requests ask for. */
export interface SummaryOptions {
  /** Asked in this order. @default none: summaries are extracted by rules, without a model */
  readonly summarizers?: readonly Summarizer[];
  /** Of checkpoints, asked in this order. @default the rules */
  readonly writers?: readonly CheckpointWriter[];
  readonly compaction?: CompactionSettings & {
    /** Whether a checkpoint that covers half of the context is taken without asking a model. @default true */
    readonly preferCheckpoint?: boolean;
    /** For all summarizers of one compaction together, in milliseconds. @default 180000 */
    readonly deadlineMs?: number;
  };
  /** When summaries that no model wrote are made again, with the next turn of their session; null: never. */
  readonly retry?: RetryLimits | null;
}

/** Compacts sessions and makes checkpoints when a request asks for it. */
export interface Summaries {
  readonly compactor: Compactor;
  /** One whose compaction has this id, so that a repeat finds it. */
  compactorOf(recordId: string): Compactor;
  readonly checkpointer: Checkpointer;
  readonly retries: SummaryRetries;
  /** Keeps the vocabularies that requests have needed. */
  readonly estimator: TokenEstimator;
  /** Does the work for a session once: who asks for the same while it runs waits for it and gets its result. */
  once<Result>(what: string, work: () => Promise<Result>): Promise<Result>;
}

/** One pair for all views of a store, so that two requests for the same session share the work. */
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
    estimator,
    async once<Result>(what: string, work: () => Promise<Result>) {
      // The same words stand for the same work.
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
