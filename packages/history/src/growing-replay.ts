import { runSteps, type Steps } from "@throughline/core/internal";
import { TurnAssembly } from "./assemble-turns.ts";
import { collectItems, collectSteps } from "./collect-items.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import { CallPairing, continuesReply } from "./pair-calls.ts";
import { createRepairLog, sortedRepairs, type Repair, type RepairLog } from "./repair.ts";
import { callIdsOf, type AssistantItem, type ReplayItem, type StepItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";
import type { ReplayTurn } from "./replay-turn.ts";

/**
 * Shares its beginning with earlier and later replays. The repairs and changed ids are computed when they are read, for
 * the state at which this replay was made.
 */
export interface SharedReplay<Message> {
  readonly repairs: readonly Repair[];
  readonly callIds: ReadonlyMap<string, string>;
  readonly toolNames: ReadonlyMap<string, string>;
  /**
   * Only the first `settledCount` messages belong to this replay. They never change, but later replays may append more.
   */
  readonly settled: readonly Message[];
  readonly settledCount: number;
  readonly tail: readonly Message[];
}

/**
 * Runs the pipeline with a settled beginning, which no later record can change. It pairs, assembles and maps the
 * beginning once. If a record does reach back, such as a late result or an open id, it discards the settled beginning
 * and repeats the work.
 */
export class GrowingReplay<Message> {
  /** Counts work for tests. */
  readonly work: { cleaned: number; paired: number; mapped: number } = { cleaned: 0, paired: 0, mapped: 0 };
  private readonly rules: ReplayRules;
  private readonly map: (turn: ReplayTurn) => readonly Message[];
  private readonly items: ReplayItem[] = [];
  private steps: ReadonlyMap<string, StepItem> = new Map();
  private readonly cleanLog: RepairLog = createRepairLog();
  private settled: Settled<Message>;
  /** Items up to this position must not be settled, because a later item reached back. */
  private blockedTo = 0;
  private messageCount = 0;

  constructor(rules: ReplayRules, map: (turn: ReplayTurn) => readonly Message[]) {
    this.rules = rules;
    this.map = map;
    this.settled = createSettled(rules, this.steps);
  }

  get taken(): number {
    return this.messageCount;
  }

  /** Adds messages, one per step. The caller must finish the steps before any other call. */
  *append(messages: readonly NeutralMessage[]): Steps<void> {
    const items = yield* this.collected(messages);
    this.messageCount += messages.length;
    this.work.cleaned += messages.length;
    for (const item of items) {
      yield;
      this.items.push(item);
      if (reachesInto(item, this.settled.undecided)) this.giveUp();
    }
  }

  private *collected(messages: readonly NeutralMessage[]): Steps<readonly ReplayItem[]> {
    const { report } = this.cleanLog;
    if (this.messageCount > 0) return yield* collectItems(messages, this.messageCount, this.rules, report);
    const { items, steps } = yield* collectSteps(messages, this.rules, report);
    this.steps = steps;
    this.settled = createSettled(this.rules, steps);
    return items;
  }

  render(): SharedReplay<Message> {
    runSteps(this.settleTurns());
    const { settled } = this;
    const tail = this.items.slice(settled.count);
    const log = createRepairLog();
    runSteps(new CallPairing(this.rules.orphanResults, log.report, this.steps, settled.pairing).takeAll(tail));
    const assembly = new TurnAssembly(this.rules, log.report, settled.assembly);
    runSteps(assembly.takeAll(tail));
    assembly.finish();
    this.work.paired += tail.length;
    const { baseCount, turns } = assembly.turns();
    const settledCount = settled.lastTurnStart;
    // The last settled turn may still grow by a user message, so it belongs to the tail.
    const messages = baseCount === settled.turnCount ? settled.messages.slice(settledCount) : [];
    for (const message of this.mapped(turns)) messages.push(message);
    const logs = [this.cleanLog.upToNow(), settled.log.upToNow(), log.upToNow()];
    const names = assembly.changedNames();
    const replay = {
      settled: settled.messages,
      settledCount,
      tail: messages,
      get repairs(): readonly Repair[] {
        return sortedRepairs(logs);
      },
      get callIds(): ReadonlyMap<string, string> {
        return names.callIds();
      },
      toolNames: names.toolNames,
    };
    this.settleMore(tail);
    return replay;
  }

  private mapped(turns: readonly ReplayTurn[]): readonly Message[] {
    this.work.mapped += turns.length;
    const messages: Message[] = [];
    for (const turn of turns) for (const message of this.map(turn)) messages.push(message);
    return messages;
  }

  /**
   * Settles whole turns of a long tail first, as in a session that was just opened. Otherwise the tail would be
   * processed twice.
   */
  *settleTurns(): Steps<void> {
    const from = this.settled.count;
    let border = this.items.length - 1;
    while (border > from && !isSafeBorder(this.items, border)) border--;
    if (border - from >= longTail) yield* this.settleTo(this.items.slice(from, border));
  }

  private giveUp(): void {
    this.settled = createSettled(this.rules, this.steps);
    this.blockedTo = this.items.length - 1;
  }

  private settleMore(tail: readonly ReplayItem[]): void {
    const border = lastBorder(tail, this.settled.pairing);
    if (border > 0) runSteps(this.settleTo(tail.slice(0, border)));
  }

  private *settleTo(items: readonly ReplayItem[]): Steps<void> {
    const { settled } = this;
    if (settled.count + items.length <= this.blockedTo) return;
    yield* settled.pairing.takeAll(items);
    yield* settled.pairing.settle(items, settled.undecided);
    yield* settled.assembly.takeAll(items);
    settled.assembly.settle();
    settled.count += items.length;
    this.work.paired += items.length;
    const { turns } = settled.assembly.turns();
    // The last settled turn may have grown by a user message, so it is mapped again.
    const from = Math.max(0, settled.turnCount - 1);
    settled.messages.length = settled.lastTurnStart;
    for (let at = from; at < turns.length; at++) {
      yield;
      settled.lastTurnStart = settled.messages.length;
      for (const message of this.map(turns[at] as ReplayTurn)) settled.messages.push(message);
      this.work.mapped++;
    }
    settled.turnCount = turns.length;
    for (let at = settled.count; at < this.items.length; at++) {
      if (reachesInto(this.items[at] as ReplayItem, settled.undecided)) return this.giveUp();
    }
  }
}

/** Settling first pays off only for a tail with at least this number of items. */
const longTail = 16;

interface Settled<Message> {
  count: number;
  readonly log: RepairLog;
  readonly pairing: CallPairing;
  readonly assembly: TurnAssembly;
  /** Holds the ids under which another call or result would change the settled part. */
  readonly undecided: Set<string>;
  turnCount: number;
  readonly messages: Message[];
  lastTurnStart: number;
}

function createSettled<Message>(rules: ReplayRules, steps: ReadonlyMap<string, StepItem>): Settled<Message> {
  const log = createRepairLog();
  const pairing = new CallPairing(rules.orphanResults, log.report, steps);
  const assembly = new TurnAssembly(rules, log.report);
  return { count: 0, log, pairing, assembly, undecided: new Set(), turnCount: 0, messages: [], lastTurnStart: 0 };
}

function reachesInto(item: ReplayItem, undecided: ReadonlySet<string>): boolean {
  if (undecided.size === 0) return false;
  if (item.kind === "result") return undecided.has(item.callId);
  return item.kind === "assistant" && callIdsOf(item).some((id) => undecided.has(id));
}

/**
 * Returns the last position at which no earlier item joins a later one. That is a user message, or a reply after
 * answered calls.
 */
function lastBorder(items: readonly ReplayItem[], pairing: CallPairing): number {
  for (let at = items.length - 1; at > 0; at--) {
    const item = items[at] as ReplayItem;
    if (isSafeBorder(items, at)) return at;
    if (item.kind === "assistant" && isNewReply(items, at, item, pairing)) return at;
  }
  return 0;
}

/** Checks for a border that needs no pairing: a user message, or a step after a step. */
function isSafeBorder(items: readonly ReplayItem[], at: number): boolean {
  const kind = items[at]?.kind;
  return kind === "user" || (kind === "step" && items[at - 1]?.kind === "step");
}

function isNewReply(items: readonly ReplayItem[], at: number, item: AssistantItem, pairing: CallPairing): boolean {
  if (item.isUnsent || items[at - 1]?.kind !== "result") return false;
  let before = at - 1;
  while (before >= 0 && items[before]?.kind === "result") before--;
  const reply = items[before];
  if (reply?.kind !== "assistant" || reply.isUnsent || continuesReply(item, reply)) return false;
  if (!reply.kept.some((block) => block.type === "callSite")) return false;
  // A reply of calls alone may be stored twice and then disappear, unless its ids are new.
  if (item.blocks.some((block) => block.type === "text" || block.type === "raw")) return true;
  const ids = callIdsOf(item);
  const isNew = (id: string): boolean =>
    !pairing.isKnown(id) &&
    items.slice(0, at).every((earlier) => earlier.kind !== "assistant" || !callIdsOf(earlier).includes(id));
  return ids.length > 0 && ids.every(isNew);
}
