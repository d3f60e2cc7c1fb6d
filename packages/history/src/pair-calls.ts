import type { Steps } from "@throughline/core/internal";
import { CallHistory } from "./call-history.ts";
import { stepSite } from "./collect-steps.ts";
import type { ReportRepair } from "./repair.ts";
import { callIdsOf } from "./replay-item.ts";
import type { AssistantItem, CallSite, ReplayItem, ResultItem, StepItem } from "./replay-item.ts";

/**
 * Assigns every result to the call that it answers, by position and not only by id. It first searches the calls beside
 * the result, then the only unanswered call with its id. It removes calls that were stored twice. It makes one pass
 * over all items and one over the unmatched results. No step searches the calls of an id again, so the cost stays
 * linear.
 */
export class CallPairing {
  private readonly orphanResults: "drop" | "text";
  private readonly report: ReportRepair;
  /** Maps call ids to steps. Steps are already paired, and only an item that reuses one of their ids reads them. */
  private readonly steps: ReadonlyMap<string, StepItem>;
  private readonly base: CallPairing | null;
  private readonly histories = new Map<string, CallHistory>();
  private lastId = "";
  private lastHistory: CallHistory | null = null;
  private strays: ResultItem[] = [];
  /**
   * Lists replies by position, including failed ones. A result after the next reply is too late for the requests that
   * were sent.
   */
  private readonly replies: { readonly place: number }[] = [];
  /** Numbers the groups of adjacent calls and results. A user message or another reply starts a new group. */
  private span = 0;
  /** Increases with every user message. A call that was stored twice repeats within one turn only. */
  private turn = 0;
  private lastReply: AssistantItem | null = null;
  /** Is true when a result came after the last reply. The next reply is then a new one. */
  private sawResult = false;

  /**
   * Starts a pairing, optionally after a settled one.
   * @param base the settled beginning, which is read and never changed
   */
  constructor(
    orphanResults: "drop" | "text",
    report: ReportRepair,
    steps: ReadonlyMap<string, StepItem>,
    base: CallPairing | null = null,
  ) {
    this.orphanResults = orphanResults;
    this.report = report;
    this.steps = steps;
    this.base = base;
    if (base === null) return;
    this.span = base.span;
    this.turn = base.turn;
    this.lastReply = base.lastReply;
    this.sawResult = base.sawResult;
  }

  /** Pairs the items of a list, one item per step, and then assigns results that stand apart from their calls. */
  *takeAll(items: readonly ReplayItem[]): Steps<void> {
    for (const item of items) {
      if (item.kind === "result") this.historyOf(item.callId).resultCount++;
      yield;
    }
    for (const item of items) {
      this.take(item);
      yield;
    }
    yield* this.sendStraysHome();
  }

  /**
   * Ends a settled beginning.
   *
   * @param undecided receives the ids under which another call or result would change the decisions about the items
   */
  *settle(items: readonly ReplayItem[], undecided: Set<string>): Steps<void> {
    for (const { callId } of this.strays) undecided.add(callId);
    this.strays = [];
    const ids = items.flatMap((item) =>
      item.kind === "result" ? [item.callId] : item.kind === "assistant" ? callIdsOf(item) : [],
    );
    for (const id of new Set(ids)) {
      yield;
      const history = this.historyOf(id);
      history.settle();
      if (history.isUndecided || history.unanswered().length > 0) undecided.add(id);
    }
  }

  isKnown(id: string): boolean {
    return this.histories.get(id)?.isKnown() ?? (this.steps.has(id) || this.base?.isKnown(id) === true);
  }

  private historyOf(id: string): CallHistory {
    // The same call is looked up several times in a row, and its result usually comes next, so the last lookup is
    // cached.
    if (this.lastHistory !== null && this.lastId === id) return this.lastHistory;
    let history = this.histories.get(id);
    if (history === undefined) {
      const settled = this.base?.histories.get(id) ?? null;
      history = new CallHistory(settled);
      const step = settled === null ? this.steps.get(id) : undefined;
      if (step !== undefined) history.begin(stepSite(step, id), step.turn);
      this.histories.set(id, history);
    }
    this.lastId = id;
    this.lastHistory = history;
    return history;
  }

  private take(item: ReplayItem): void {
    if (item.kind === "assistant") {
      this.takeReply(item);
    } else if (item.kind === "result") {
      this.takeResult(item);
    } else if (item.kind === "step") {
      this.takeStep(item);
    } else if (item.kind === "user") {
      this.turn++;
      this.span++;
      this.lastReply = null;
      this.sawResult = false;
    }
  }

  /** A step needs no pairing: no item joins it, and its calls already have their results. */
  private takeStep(step: StepItem): void {
    step.turn = this.turn;
    if (this.sawResult) this.span++;
    this.replies.push(step);
    this.lastReply = null;
    this.sawResult = step.results.length > 0;
  }

  private takeReply(item: AssistantItem): void {
    item.kept = item.blocks;
    if (clearResults(item) && !item.isUnsent) this.takeOutStoredTwice(item);
    if (item.kept.length === 0 && !item.isUnsent) return;
    const isFurtherPart = continuesReply(item, this.lastReply);
    if (this.sawResult && !isFurtherPart) this.span++;
    if (!isFurtherPart) this.replies.push(item);
    this.sawResult = false;
    this.lastReply = item;
    for (const block of item.kept) {
      if (block.type === "callSite") this.historyOf(block.call.id).open(block, this.span);
    }
  }

  private takeOutStoredTwice(item: AssistantItem): void {
    let twice: Set<unknown> | null = null;
    for (const block of item.blocks) {
      if (block.type !== "callSite" || !this.historyOf(block.call.id).isStoredTwice(block, this.turn)) continue;
      this.report("duplicate-call", item, block.call.id);
      (twice ??= new Set()).add(block);
    }
    if (twice === null) return;
    const kept = item.blocks.filter((block) => twice?.has(block) !== true);
    const isOnlyThinking = kept.every((block) => block.type === "thinking");
    for (const block of isOnlyThinking ? kept : []) {
      if (block.type === "thinking") this.report("thinking-removed", item, block.thinking);
    }
    item.kept = isOnlyThinking ? [] : kept;
  }

  private takeResult(item: ResultItem): void {
    item.shownAs = null;
    this.sawResult = true;
    const owner = this.historyOf(item.callId).takeOpen(this.span);
    if (owner === null) this.strays.push(item);
    else this.give(owner, item);
  }

  private give(owner: CallSite, item: ResultItem): void {
    owner.result = item;
    if (owner.owner.isUnsent) this.report("result-of-dropped-turn", item, item.callId);
  }

  /** Assigns a stray result if exactly one unanswered call fits it. */
  private *sendStraysHome(): Steps<void> {
    const homes = new Map<string, readonly CallSite[]>();
    for (const item of this.strays) {
      yield;
      const history = this.historyOf(item.callId);
      const open = homes.get(item.callId) ?? history.unanswered();
      homes.set(item.callId, open);
      const [home] = open;
      if (open.length === 1 && home !== undefined && isSameTool(home, item)) {
        homes.set(item.callId, []);
        this.sendHome(home, item);
      } else if (open.length === 0 && history.isKnown()) {
        this.report("duplicate-result", item, item.callId);
      } else {
        if (this.orphanResults === "text" && item.content.length > 0) item.shownAs = "orphan";
        this.report("orphan-result", item, item.callId, item.shownAs === null ? null : "text");
      }
    }
  }

  private sendHome(home: CallSite, item: ResultItem): void {
    if (!home.owner.isUnsent && this.isTooLate(home, item)) {
      if (item.content.length > 0) item.shownAs = "late";
      this.report("late-result-shown", item, home.owner.recordId, "text");
      return;
    }
    this.give(home, item);
    if (!home.owner.isUnsent) this.report("result-moved", item, null, home.owner.recordId);
  }

  /**
   * Checks whether the model already continued without the result. The earlier part of the request must not change
   * under later messages.
   */
  private isTooLate(home: CallSite, item: ResultItem): boolean {
    let low = 0;
    let high = this.replies.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.replies[middle] as { place: number }).place <= home.owner.place) low = middle + 1;
      else high = middle;
    }
    const next = this.replies[low];
    return next !== undefined && next.place < item.place;
  }
}

function clearResults(item: AssistantItem): boolean {
  let hasCalls = false;
  for (const block of item.blocks) {
    if (block.type !== "callSite") continue;
    block.result = null;
    hasCalls = true;
  }
  return hasCalls;
}

/**
 * Parts with the same reply id belong together. A call that was stored apart without an id belongs to the reply before
 * it.
 */
export function continuesReply(item: AssistantItem, lastReply: AssistantItem | null): boolean {
  if (lastReply === null || lastReply.isUnsent || lastReply.isSummary || item.isUnsent) return false;
  if (item.responseId !== null && lastReply.responseId !== null) return item.responseId === lastReply.responseId;
  return item.isFragment;
}

function isSameTool(site: CallSite, item: ResultItem): boolean {
  return item.toolName === null || item.toolName === "" || item.toolName === site.call.name;
}
