import type { BackgroundCompaction } from "@throughline/compaction/internal";
import type { Compactor } from "@throughline/compaction";
import { hasErrorCode, type SessionEntry, type SessionRef } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import type { StepContext } from "../session-options.ts";
import { keyOf } from "./turn-memory.ts";
import type { WholeTurnListener } from "./whole-turn-event.ts";

export interface BackgroundCompactionsOptions {
  readonly compactor: Compactor;
  /** Of the size at which a compaction is due. */
  readonly percent: number;
  readonly listener: WholeTurnListener | null;
  /** Shows open sessions what was put in place between two turns. */
  readonly refresh: (ref: SessionRef) => Promise<void>;
}

interface Run {
  readonly cycle: number;
  /** Null when it is over: it holds the messages it was made of. */
  work: BackgroundCompaction | null;
}

const field = "compactionBegun";

/**
 * Summaries that are begun before they are due, beside the turns, and put in place between two calls or two turns. One a
 * cycle, whatever becomes of it: what is due later waits for one that is under way, and asks again only when there is none.
 */
export class BackgroundCompactions {
  readonly #options: BackgroundCompactionsOptions;
  readonly #runs = new Map<string, Run>();
  #isClosed = false;

  constructor(options: BackgroundCompactionsOptions) {
    this.#options = options;
  }

  /** Begins one when the prompt is near the size at which it is due. The patch goes into the entry with the turn's end. */
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

  /** Puts in place what is ready. True when the window is another one now. */
  async swap({ ref, turn, signal, refresh }: StepContext): Promise<boolean> {
    const run = this.#runs.get(keyOf(ref));
    const work = run?.work ?? null;
    if (work === null) return false;
    // A compaction that was due took it.
    if (work.state !== "ready" && work.prepared !== null) this.#letGo(ref, work);
    if (!isBetter(work) || turn === null) return false;
    try {
      const { kind } = await work.apply({ turn, signal });
      this.#letGo(ref, work);
      if (kind === "compacted") await refresh();
      return kind === "compacted";
    } catch (cause) {
      if (hasErrorCode(cause, "TURN_FENCED") || signal.aborted) throw cause;
      // Nothing is due yet: the turn goes on without it.
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
    // By another process, or before a restart: a summary that nobody lived to use is not paid for twice.
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
      // A turn that is open takes it before its next call.
      const { kind } = await work.apply();
      if (kind !== "busy") this.#letGo(ref, work);
      if (kind === "compacted") await refresh(ref);
    } catch (cause) {
      this.#leave(ref, work, cause);
    }
  }

  /** That there was one in this cycle is still known, and nothing of what it was made of. */
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

/** What no model wrote waits until the window is full: until then the conversation itself says more. */
function isBetter({ state, prepared }: BackgroundCompaction): boolean {
  return state === "ready" && prepared?.needsRetry === false;
}
