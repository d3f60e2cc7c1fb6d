import { optionKinds, type OptionTable, runSteps, type Steps } from "@throughline/core/internal";
import type { GrowingContext } from "./growing-context.ts";
import { withCut, type LimitedContext } from "./limit-context.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import {
  ResultTruncation,
  truncateTable,
  type TruncatedContext,
  type TruncateOptions,
  type Truncation,
} from "./truncate-results.ts";
import { limitTable, WindowCutter, type ContextLimit, type WindowCut } from "./window-cutter.ts";

/** Limits the part of a context that a history renders. */
export interface HistoryWindow {
  /**
   * Sets the limit at which the oldest messages are dropped. `recorded` is the cut of an earlier process. @default no
   * limit
   */
  readonly limit?: ContextLimit | undefined;
  /** Limits the length of tool results. `recorded` and `sentToSeq` come from an earlier process. @default no limit */
  readonly truncate?: TruncateOptions | undefined;
}

export const windowTable: OptionTable<HistoryWindow> = {
  limit: optionKinds.objectOf(limitTable),
  truncate: optionKinds.objectOf(truncateTable),
};

/** Holds a context with its cut and its shortened results. */
export interface WindowedContext extends LimitedContext, TruncatedContext {}

/**
 * Applies both limits to a growing context. It shortens long results first and then drops the oldest messages, so that
 * the limit counts the sent form. State that a plain next message does not change is kept.
 */
export class GrowingWindow {
  /** Increases whenever the beginning changes, because a replay of the old beginning is then invalid. */
  generation = 0;
  private readonly source: GrowingContext;
  private limit: ContextLimit;
  private truncate: TruncateOptions;
  private sentToSeq: number | null;
  /** Records how results were shortened when they were sent, because they must always be sent in the same form. */
  private readonly sent = new Map<string, Truncation>();
  private state: WindowState | null = null;
  /** Holds the messages that were kept before the limit changed, until the new cut is known. */
  private keptBefore: { readonly seqs: readonly number[]; readonly cut: WindowCut | null } | null = null;
  /** Messages up to this seq were written with the beginning of an earlier limit. */
  private unboundToSeq = 0;

  constructor(source: GrowingContext, { limit = {}, truncate = {} }: HistoryWindow) {
    this.source = source;
    this.limit = limit;
    this.truncate = truncate;
    this.sentToSeq = truncate.sentToSeq ?? null;
  }

  /** Changes the limits. A limit that is not given stays. */
  change({ limit = this.limit, truncate = this.truncate }: HistoryWindow): void {
    if (limit !== this.limit && this.sentToSeq !== null) {
      const { kept, cutter } = this.current();
      const cut = cutter.cut();
      this.keptBefore ??= { seqs: kept.map(({ seq }) => seq), cut };
      // A message that was sent without its thinking must always be sent without it, because the later messages were
      // written that way.
      this.unboundToSeq = Math.max(cut?.metAtSeq ?? 0, this.unboundToSeq);
    }
    this.limit = limit;
    this.truncate = truncate;
    this.state = null;
  }

  /** Records that the last result was sent, and that the model has received all records up to a seq. */
  markSent(toSeq: number): void {
    this.sentToSeq = Math.max(toSeq, this.sentToSeq ?? 0);
    const { state } = this;
    if (state === null) return;
    for (const truncation of state.truncation.inForce.slice(state.sentCount)) {
      this.sent.set(truncation.recordId, truncation);
    }
    state.sentCount = state.truncation.inForce.length;
  }

  /** Processes new messages, one per step. The caller must finish the steps before any other call. */
  *update(): Steps<void> {
    yield* this.steps();
  }

  messagesFrom(place: number): readonly NeutralMessage[] {
    return this.current().kept.slice(place);
  }

  context(): WindowedContext {
    const { cutter, truncation, shortened } = this.current();
    const context = { ...this.source.current(), messages: [...shortened] };
    return { ...withCut(context, cutter), truncations: [...truncation.inForce] };
  }

  private current(): WindowState {
    return runSteps(this.steps());
  }

  private *steps(): Steps<WindowState> {
    const { source } = this;
    yield* source.prepare();
    // The source must be read first, because this call may rebuild it.
    let further = source.messagesFrom(this.state?.shortened.length ?? 0);
    let { state } = this;
    if (state === null || state.sourceGeneration !== source.generation) {
      further = source.messagesFrom(0);
      state = this.begin(further);
    }
    let isCut = false;
    for (const message of further) {
      yield;
      const short = state.truncation.take(message);
      state.shortened.push(short);
      state.kept.push(short);
      isCut = state.cutter.take(short) || isCut;
    }
    if (this.isCutAsBefore(state)) return yield* this.steps();
    const isUnbound = this.unbind(state);
    if (isCut || isUnbound) {
      state.kept = state.cutter.kept();
      this.generation++;
    }
    return state;
  }

  /**
   * Detects a new limit that leads to the same cut as before, but met at a later message. Messages after the earlier
   * position still have the same beginning, so their thinking stays valid. The recorded cut is therefore restored.
   */
  private isCutAsBefore({ cutter, shortened }: WindowState): boolean {
    const before = this.keptBefore;
    if (before?.cut == null || !isBeginning(before.seqs, cutter, shortened)) return false;
    const { cut } = before;
    if (cutter.cut()?.metAtSeq === cut.metAtSeq) return false;
    // Without this reset the window would be rebuilt forever if the limit allows no such cut.
    this.keptBefore = null;
    this.limit = { ...this.limit, recorded: cut };
    this.state = null;
    return true;
  }

  /** Unbinds the thinking of messages that were written with a different beginning under an earlier limit. */
  private unbind(state: WindowState): boolean {
    if (state.isUnbound) return false;
    state.isUnbound = true;
    const { keptBefore } = this;
    this.keptBefore = null;
    if (keptBefore !== null) {
      if (!isBeginning(keptBefore.seqs, state.cutter, state.shortened))
        this.unboundToSeq = Math.max(state.shortened.at(-1)?.seq ?? 0, this.unboundToSeq);
    }
    if (this.unboundToSeq === 0) return false;
    state.cutter.unbindTo(this.unboundToSeq);
    return true;
  }

  private begin(known: readonly NeutralMessage[]): WindowState {
    const recorded = [...(this.truncate.recorded ?? []), ...this.sent.values()];
    this.generation++;
    this.state = {
      sourceGeneration: this.source.generation,
      truncation: new ResultTruncation(
        { ...this.truncate, recorded, sentToSeq: this.sentToSeq },
        known.at(-1)?.seq ?? 0,
      ),
      cutter: new WindowCutter(this.limit, known),
      shortened: [],
      kept: [],
      sentCount: 0,
      isUnbound: false,
    };
    return this.state;
  }
}

function isBeginning(seqs: readonly number[], cutter: WindowCutter, messages: readonly NeutralMessage[]): boolean {
  const places = cutter.keptPlaces();
  return seqs.every((seq, at) => seq === messages[places[at] ?? -1]?.seq);
}

interface WindowState {
  readonly sourceGeneration: number;
  readonly truncation: ResultTruncation;
  readonly cutter: WindowCutter;
  readonly shortened: NeutralMessage[];
  kept: NeutralMessage[];
  sentCount: number;
  /** Is true once the effect of an earlier limit was checked, because the check must run only once. */
  isUnbound: boolean;
}
