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

/** How a compaction ended. */
export type CompactionResult =
  /** The compaction is in the log. */
  | {
      readonly kind: "compacted";
      /** The id of the compaction's record. */
      readonly recordId: string;
      /** Where the summary came from. */
      readonly source: SummarySource;
      /** Who wrote the summary; null for a checkpoint and a stub. */
      readonly provider: string | null;
      /** The checkpoint that is the summary; null where none is. */
      readonly checkpointId: string | null;
      /** Whether the summary is to be made again by a model. */
      readonly needsRetry: boolean;
      /** Of the calls for the summary; null where no provider stated any. */
      readonly usage: SummaryUsage | null;
      /** The size of the next request in tokens, without the compaction. */
      readonly tokensBefore: number;
      /** Estimated: nothing was sent yet. */
      readonly tokensAfter: number;
      /** How many messages the summary replaces. */
      readonly messagesRemoved: number;
      /** The id of the first message that stays. */
      readonly firstKeptId: string;
      /** What was appended; a live session reads it like any other record. */
      readonly appended: AppendResult;
    }
  | NothingToCompact
  /** Another compaction or a reset was faster, or the branch was left; nothing was written. */
  | { readonly kind: "superseded" }
  /** Only in the background: the summary is ready, and a turn is open. */
  | { readonly kind: "busy" };

/** A compaction whose summary is made while the conversation goes on. */
export interface BackgroundCompaction {
  /** Where the work stands, from `planning` to `applied`, `nothing`, `superseded` or `stopped`. */
  readonly state: CompactionState;
  /** The summary in hand; null before there is one. */
  readonly prepared: PreparedCompaction | null;
  /** Resolves when a summary is in hand or there is nothing to do. Rejects with ABORTED after `stop`. */
  readonly ready: Promise<CompactionState>;
  /**
   * Swaps exactly what was summarized for the summary; what came since stays. Waits until it is ready. `busy` while a
   * turn is open whose fence is not given. A second call returns the same compaction.
   */
  apply(options?: ApplyOptions): Promise<CompactionResult>;
  /** Ends the work; nothing is written, and `apply` rejects with ABORTED. */
  stop(): void;
}

/** How often the plan is made again if the conversation changes under the work. */
const mostPlans = 3;

/** One compaction from its plan to its end. Its states are those of SPEC.md. */
export class CompactionRun implements BackgroundCompaction {
  state: CompactionState = "planning";
  ready: Promise<CompactionState>;
  private readonly work: CompactionWork;
  private readonly stopping = new AbortController();
  prepared: PreparedCompaction | null = null;
  /** Those who put it in place come one after the other. */
  private applying: Promise<unknown> = Promise.resolve();
  private result: CompactionResult | null = null;
  private nothing: NothingToCompact = { kind: "nothing", reason: "no-gain", messages: 0, tokens: 0 };
  private plans = 0;
  private announced: PlannedSizes | null = null;
  private isApplying = false;
  private readonly onOver: (run: CompactionRun) => void;

  /** `onOver`: called once it can be applied no more, or is applied. */
  constructor(work: CompactionWork, onOver: (run: CompactionRun) => void) {
    this.onOver = onOver;
    const { signal } = this.stopping;
    this.work = { ...work, signal: work.signal === null ? signal : AbortSignal.any([work.signal, signal]) };
    this.ready = this.prepare();
    // Whoever never asks must not end the process.
    this.ready.catch(() => {});
  }

  stop(): void {
    this.stopping.abort();
    // What is being written cannot be called back.
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

  /** A plan is announced once, and another one only when it is carried out in its place. */
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

/** Whether a summary is being made, or waits to be put in place. */
function isUnderWay({ state }: { readonly state: CompactionState }): boolean {
  return state === "planning" || state === "summarizing" || state === "ready";
}

/** A compaction that was asked for twice at once runs once. */
export function abortedBefore(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) {
    throw new ThroughlineError("ABORTED", "The compaction was aborted before it began.", { cause: signal.reason });
  }
}
