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

/** What a history leaves of its context. */
export interface HistoryWindow {
  /** Where the oldest messages go. `recorded` is the cut of an earlier process. @default no limit */
  readonly limit?: ContextLimit;
  /** How long tool results may be. `recorded` and `sentToSeq` are of an earlier process. @default no limit */
  readonly truncate?: TruncateOptions;
}

/** The kinds of the options of a window. */
export const windowTable: OptionTable<HistoryWindow> = {
  limit: optionKinds.objectOf(limitTable),
  truncate: optionKinds.objectOf(truncateTable),
};

/** A context with its cut and its shortened results. */
export interface WindowedContext extends LimitedContext, TruncatedContext {}

/**
 * A growing context with long results shortened and the oldest messages left out: first the one, then the other, so that
 * the limit counts what is sent. What a plain next message does not change is kept.
 */
export class GrowingWindow {
  /** Grows whenever the beginning is another one than before. */
  generation = 0;
  private readonly source: GrowingContext;
  private limit: ContextLimit;
  private truncate: TruncateOptions;
  private sentToSeq: number | null;
  /** How results were shortened that were sent. */
  private readonly sent = new Map<string, Truncation>();
  private state: WindowState | null = null;
  /** What was left before the limit changed, until it is known what is left now. */
  private keptBefore: { readonly seqs: readonly number[]; readonly cut: WindowCut | null } | null = null;
  /** Up to here messages were written with a beginning of an earlier limit. */
  private unboundToSeq = 0;

  constructor(source: GrowingContext, { limit = {}, truncate = {} }: HistoryWindow) {
    this.source = source;
    this.limit = limit;
    this.truncate = truncate;
    this.sentToSeq = truncate.sentToSeq ?? null;
  }

  /** Other limits from now on; one that is not given stays. */
  change({ limit = this.limit, truncate = this.truncate }: HistoryWindow): void {
    if (limit !== this.limit && this.sentToSeq !== null) {
      const { kept, cutter } = this.current();
      const cut = cutter.cut();
      this.keptBefore ??= { seqs: kept.map(({ seq }) => seq), cut };
      // What was sent without its thinking has to go without it ever after: what came later was written so.
      this.unboundToSeq = Math.max(cut?.metAtSeq ?? 0, this.unboundToSeq);
    }
    this.limit = limit;
    this.truncate = truncate;
    this.state = null;
  }

  /** The last result was sent, and with it the model got all records up to a seq. */
  markSent(toSeq: number): void {
    this.sentToSeq = Math.max(toSeq, this.sentToSeq ?? 0);
    const { state } = this;
    if (state === null) return;
    for (const truncation of state.truncation.inForce.slice(state.sentCount)) {
      this.sent.set(truncation.recordId, truncation);
    }
    state.sentCount = state.truncation.inForce.length;
  }

  /** Takes what came since, a message a step. What was begun must be ended before anything else is asked. */
  *update(): Steps<void> {
    yield* this.steps();
  }

  /** What is left, from a place on. */
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
    // Asked first: it may be built anew.
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
   * A new limit may lead to the cut that was, met with a later message. What was written from the earlier one on has the same
   * beginning still, with its thinking: so the cut stays where it was met.
   */
  private isCutAsBefore({ cutter, shortened }: WindowState): boolean {
    const before = this.keptBefore;
    if (before?.cut == null || !isBeginning(before.seqs, cutter, shortened)) return false;
    const { cut } = before;
    if (cutter.cut()?.metAtSeq === cut.metAtSeq) return false;
    // Else it would be built anew for ever where the limit leaves no such cut.
    this.keptBefore = null;
    this.limit = { ...this.limit, recorded: cut };
    this.state = null;
    return true;
  }

  /** What another limit left a beginning of was not written with the beginning it has now. */
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

/** Whether what a cutter leaves begins with these. */
function isBeginning(seqs: readonly number[], cutter: WindowCutter, messages: readonly NeutralMessage[]): boolean {
  const places = cutter.keptPlaces();
  return seqs.every((seq, at) => seq === messages[places[at] ?? -1]?.seq);
}

interface WindowState {
  readonly sourceGeneration: number;
  readonly truncation: ResultTruncation;
  readonly cutter: WindowCutter;
  /** All messages, the long results shortened. */
  readonly shortened: NeutralMessage[];
  /** What is left of them. */
  kept: NeutralMessage[];
  /** How many decisions were sent. */
  sentCount: number;
  /** Whether it was looked at what an earlier limit left. */
  isUnbound: boolean;
}
