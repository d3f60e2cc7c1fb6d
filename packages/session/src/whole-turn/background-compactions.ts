import type { BackgroundCompaction } from "@throughline/compaction/internal";
import type { Compactor } from "@throughline/compaction";
import { hasErrorCode, type SessionEntry, type SessionRef } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import type { StepContext } from "../session-options.ts";
import { keyOf } from "./turn-memory.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

export interface BackgroundCompactionsOptions {
  readonly compactor: Compactor;
  /** Sets the start, in percent of the size at which a compaction is due. */
  readonly percent: number;
  readonly listener: WholeTurnListener | null;
  /** Refreshes open sessions after a summary was applied between two turns. */
  readonly refresh: (ref: SessionRef) => Promise<void>;
}

interface Run {
  readonly cycle: number;
  /** Is null once the run is over, because the work holds the messages that it summarized. */
  work: BackgroundCompaction | null;
}

const field = "compactionBegun";

/**
 * Begins summaries beside the turns before they are due, and applies them between two calls or two turns. Each cycle
 * has at most one, whatever its result. A due compaction waits for a summary in progress, and asks a model only when
 * there is none.
 */
export class BackgroundCompactions {
  readonly #options: BackgroundCompactionsOptions;
  readonly #runs = new Map<string, Run>();
  #isClosed = false;

  constructor(options: BackgroundCompactionsOptions) {
    this.#options = options;
  }

  /**
   * Begins a summary when the prompt is near the size at which a compaction is due. The returned fields go into the
   * entry with the end of the turn.
   */
  begin({ ref, turnId, entry, gauge, counter, calibration }: StepContext): Readonly<Record<string, unknown>> {
    const { compactor, percent, listener } = this.#options;
    const { tokens, windowTokens } = gauge;
    const cycle = entry.compactionCount ?? 0;
    const { triggerTokens } = compactor.need({ tokens, windowTokens, messages: 0 });
    const isNear = triggerTokens !== null && tokens !== null && tokens >= (triggerTokens * percent) / 100;
    if (!isNear || this.#isClosed || this.#hasBegun(ref, entry, cycle)) return {};
    tellListener(listener, { name: "compaction.begun", ref, turnId, tokens, triggerTokens });
    const work = compactor.begin(ref, { counter, calibration, windowTokens, totalTokens: tokens });
    this.#runs.set(keyOf(ref), { cycle, work });
    void this.#betweenTurns(ref, work);
    return { [field]: cycle };
  }

  /** Applies a summary that is ready. True when the window has changed. */
  async swap({ ref, turn, signal, refresh }: StepContext): Promise<boolean> {
    const run = this.#runs.get(keyOf(ref));
    const work = run?.work ?? null;
    if (work === null) return false;
    // A due compaction has taken this work over, so it need not be kept here.
    if (work.state !== "ready" && work.prepared !== null) this.#letGo(ref, work);
    if (!isBetter(work) || turn === null) return false;
    try {
      const { kind } = await work.apply({ turn, signal });
      this.#letGo(ref, work);
      if (kind === "compacted") await refresh();
      return kind === "compacted";
    } catch (cause) {
      if (hasErrorCode(cause, "TURN_FENCED") || signal.aborted) throw cause;
      // No compaction is due yet, so the turn continues without the summary.
      this.#leave(ref, work, cause);
      return false;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const works = [...this.#runs.values()].flatMap(({ work }) => (work === null ? [] : [work]));
    for (const work of works) work.stop();
    await Promise.allSettled(works.map(({ ready }) => ready));
    this.#runs.clear();
  }

  #hasBegun(ref: SessionRef, entry: SessionEntry, cycle: number): boolean {
    const run = this.#runs.get(keyOf(ref));
    // Another process, or this one before a restart, began a summary in this cycle. A second model call in the cycle is
    // avoided, even if the first summary was never used.
    if (entry[field] !== cycle) return run !== undefined && run.cycle === cycle;
    if (run?.work === null) this.#runs.delete(keyOf(ref));
    return true;
  }

  async #betweenTurns(ref: SessionRef, work: BackgroundCompaction): Promise<void> {
    const { refresh } = this.#options;
    try {
      await work.ready;
      if (work.state !== "ready") this.#letGo(ref, work);
      if (this.#isClosed || !isBetter(work)) return;
      // An open turn applies the summary before its next call.
      const { kind } = await work.apply();
      if (kind !== "busy") this.#letGo(ref, work);
      if (kind === "compacted") await refresh(ref);
    } catch (cause) {
      this.#leave(ref, work, cause);
    }
  }

  /** The run stays known for its cycle, but the summarized messages are released. */
  #letGo(ref: SessionRef, work: BackgroundCompaction): void {
    const run = this.#runs.get(keyOf(ref));
    if (run?.work === work) run.work = null;
  }

  #leave(ref: SessionRef, work: BackgroundCompaction, cause: unknown): void {
    work.stop();
    this.#letGo(ref, work);
    if (!this.#isClosed) tellListener(this.#options.listener, { name: "compaction.left", ref, cause });
  }
}

/**
 * A summary without a model is not applied before the window is full. Until then the conversation itself contains more.
 */
function isBetter({ state, prepared }: BackgroundCompaction): boolean {
  return state === "ready" && prepared?.needsRetry === false;
}
