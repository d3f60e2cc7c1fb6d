import { type AppendResult, ThroughlineError } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { applyCompaction, type ApplyOptions } from "./apply-compaction.ts";
import { compactionSteps, stepFrom, type CompactionState, type CompactionStep } from "./compaction-steps.ts";
import type { SummarySource, SummaryUsage } from "./compaction-details.ts";
import type { PlannedSizes } from "./compaction-event.ts";
import type { CompactionWork } from "./compaction-work.ts";
import { prepareOnce } from "./compaction-work.ts";
import type { CompactionPlan, NothingToCompact } from "./plan-compaction.ts";
import type { PreparedCompaction } from "./prepare-compaction.ts";

/** States how a compaction ended. */
export type CompactionResult =
  /** The log contains the compaction. */
  | {
      readonly kind: "compacted";
      /** Holds the id of the compaction's record. */
      readonly recordId: string;
      /** States which source the summary came from. */
      readonly source: SummarySource;
      /** Names the summarizer that wrote the summary; null for a checkpoint and a stub. */
      readonly provider: string | null;
      /** Holds the id of the checkpoint that became the summary; null for any other source. */
      readonly checkpointId: string | null;
      /** States whether a model has yet to rewrite the summary. */
      readonly needsRetry: boolean;
      /** Counts the calls for the summary and their tokens; null when no provider stated them. */
      readonly usage: SummaryUsage | null;
      /** Holds the size of the next request in tokens, without the compaction. */
      readonly tokensBefore: number;
      /** Holds the size of the next request in tokens, estimated because nothing was sent yet. */
      readonly tokensAfter: number;
      /** Counts the messages that the summary replaces. */
      readonly messagesRemoved: number;
      /** Holds the id of the first message that stays. */
      readonly firstKeptId: string;
      /** Holds what the store appended. A live session reads it like any other record. */
      readonly appended: AppendResult;
    }
  | NothingToCompact
  /** Another compaction or a reset came first, or the branch was left. Nothing was written. */
  | { readonly kind: "superseded" }
  /** The summary is ready, but a turn is open. Only a background compaction ends with it. */
  | { readonly kind: "busy" };

/** Makes a summary in the background while the conversation continues. */
export interface BackgroundCompaction {
  /** States how far the work is, from `planning` to `applied`, `nothing`, `superseded` or `stopped`. */
  readonly state: CompactionState;
  /** Holds the summary that is ready to be applied; null before that. */
  readonly prepared: PreparedCompaction | null;
  /** Resolves when a summary is ready or there is nothing to do. Rejects with ABORTED after `stop`. */
  readonly ready: Promise<CompactionState>;
  /**
   * Replaces exactly the summarized messages with the summary; newer messages stay. Waits until the summary is ready.
   * Returns `busy` while a turn is open whose fence is missing. A second call returns the same compaction.
   */
  apply(options?: ApplyOptions): Promise<CompactionResult>;
  /** Ends the work without writing anything; `apply` then rejects with ABORTED. */
  stop(): void;
}

/** Limits the new plans when the conversation changes during the work: each one may cost a model call. */
const mostPlans = 3;

/** Runs one compaction from its plan to its end. SPEC.md defines the states. */
export class CompactionRun implements BackgroundCompaction {
  state: CompactionState = "planning";
  ready: Promise<CompactionState>;
  private readonly work: CompactionWork;
  private readonly stopping = new AbortController();
  prepared: PreparedCompaction | null = null;
  /** Serializes the calls of `apply`: a later call returns the result of an earlier one. */
  private applying: Promise<unknown> = Promise.resolve();
  private result: CompactionResult | null = null;
  private nothing: NothingToCompact = { kind: "nothing", reason: "no-gain", messages: 0, tokens: 0 };
  private plans = 0;
  private announced: PlannedSizes | null = null;
  private isApplying = false;
  private readonly onOver: (run: CompactionRun) => void;

  /** Calls `onOver` when the run has ended, so that its owner stops sharing it. */
  constructor(work: CompactionWork, onOver: (run: CompactionRun) => void) {
    this.onOver = onOver;
    const { signal } = this.stopping;
    this.work = { ...work, signal: work.signal === null ? signal : AbortSignal.any([work.signal, signal]) };
    this.ready = this.prepare();
    // Without a handler, a rejection would end the process when no caller awaits `ready`.
    this.ready.catch(() => {});
  }

  stop(): void {
    this.stopping.abort();
    // An append that has started cannot be canceled, so the state must follow its result.
    if (this.state === "ready" && !this.isApplying) this.step("aborted");
  }

  apply(options: ApplyOptions = {}): Promise<CompactionResult> {
    const work = this.applying.then(() => this.applyAlone(options));
    this.applying = work.catch(() => {});
    return work;
  }

  private async applyAlone(options: ApplyOptions): Promise<CompactionResult> {
    await this.ready;
    this.isApplying = true;
    try {
      return await this.applyNow(options);
    } finally {
      this.isApplying = false;
    }
  }

  private async applyNow(options: ApplyOptions): Promise<CompactionResult> {
    if (this.result !== null) return this.result;
    while (this.state === "ready" && this.prepared !== null) {
      const onMoved = (): void => this.step("moved");
      const outcome = await applyCompaction(this.work.store, this.work.ref, this.prepared, { ...options, onMoved });
      if (outcome.kind === "applied") return (this.result = this.applied(this.prepared, outcome.result));
      if (outcome.kind === "busy") {
        this.step("busy");
        return { kind: "busy" };
      }
      if (outcome.kind === "overtaken" || this.plans >= mostPlans) {
        this.step("overtaken");
        break;
      }
      this.step("outdated");
      this.ready = this.prepare();
      await this.ready;
    }
    if (this.state === "stopped") throw new ThroughlineError("ABORTED", "The compaction was stopped.");
    if (this.state === "nothing") return this.nothing;
    tellListener(this.work.onEvent, { name: "compaction.superseded", ref: this.work.ref });
    return { kind: "superseded" };
  }

  private async prepare(): Promise<CompactionState> {
    this.plans++;
    try {
      const outcome = await prepareOnce(this.work, {
        onPlanned: () => this.step("planned"),
        onPlan: (plan) => this.announce(plan),
      });
      if ("reason" in outcome) {
        this.nothing = outcome;
        this.step("no-gain");
        tellListener(this.work.onEvent, { name: "compaction.nothing", ref: this.work.ref, reason: outcome.reason });
      } else {
        this.prepared = outcome;
        this.step("written");
      }
      return this.state;
    } catch (error) {
      this.step("aborted");
      throw error;
    }
  }

  /** Reports a plan once. A later plan is reported only if it removes or keeps another number of messages. */
  private announce({ removedMessages, keptMessages, tokensBefore }: CompactionPlan): void {
    const sizes: PlannedSizes = { removedMessages, keptMessages, tokensBefore };
    const before = this.announced;
    this.announced = sizes;
    const { onEvent, ref } = this.work;
    if (before === null) tellListener(onEvent, { name: "compaction.planned", ref, ...sizes });
    else if (before.removedMessages !== removedMessages || before.keptMessages !== keptMessages)
      tellListener(onEvent, { name: "compaction.replanned", ref, ...sizes });
  }

  private applied(prepared: PreparedCompaction, result: AppendResult): CompactionResult {
    this.step("committed");
    const { plan, recordId, source, provider, needsRetry, usage, tokensAfter } = prepared;
    const { tokensBefore } = plan;
    const what = { recordId, source, provider, needsRetry, usage, tokensBefore, tokensAfter };
    tellListener(this.work.onEvent, { name: "compaction.applied", ref: this.work.ref, ...what });
    const { removedMessages: messagesRemoved, firstKeptId } = plan;
    const { checkpointId } = prepared;
    return { kind: "compacted", ...what, checkpointId, messagesRemoved, firstKeptId, appended: result };
  }

  private step(step: CompactionStep): void {
    this.state = stepFrom(compactionSteps, this.state, step);
    if (!isUnderWay(this)) this.onOver(this);
  }
}

function isUnderWay({ state }: { readonly state: CompactionState }): boolean {
  return state === "planning" || state === "summarizing" || state === "ready";
}

export function abortedBefore(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) {
    throw new ThroughlineError("ABORTED", "The compaction was aborted before it began.", { cause: signal.reason });
  }
}
