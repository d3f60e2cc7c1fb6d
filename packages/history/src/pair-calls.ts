import { CallHistory } from "./call-history.ts";
import type { ReportRepair } from "./repair.ts";
import { callSitesOf, type AssistantItem, type CallSite, type ReplayItem, type ResultItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";

/**
 * Gives every result to the call it answers, by occurrence and not by id alone: first among the calls it stands with;
 * then, when it stands elsewhere, to the one unanswered call that bears its id. Calls stored twice are taken out.
 * One pass, and one over what is left: no step looks through the calls of an id again.
 */
export function pairCalls(items: readonly ReplayItem[], rules: ReplayRules, report: ReportRepair): void {
  const pairing = new Pairing(report);
  for (const item of items) if (item.kind === "result") pairing.historyOf(item.callId).resultCount++;
  for (const item of items) pairing.take(item);
  pairing.settle(rules);
}

class Pairing {
  private readonly report: ReportRepair;
  private readonly histories = new Map<string, CallHistory>();
  private readonly strays: ResultItem[] = [];
  /** Calls and results of one number stand together, with no other reply and no user message between. */
  private span = 0;
  /** Grows with every user message. */
  private turn = 0;
  private lastReply: AssistantItem | null = null;
  /** True when a result came after the last reply: the next reply is a new one. */
  private sawResult = false;

  constructor(report: ReportRepair) {
    this.report = report;
  }

  historyOf(id: string): CallHistory {
    let history = this.histories.get(id);
    if (history === undefined) this.histories.set(id, (history = new CallHistory()));
    return history;
  }

  take(item: ReplayItem): void {
    if (item.kind === "assistant") {
      this.takeReply(item);
    } else if (item.kind === "result") {
      this.takeResult(item);
    } else {
      this.turn++;
      this.span++;
      this.lastReply = null;
      this.sawResult = false;
    }
  }

  private takeReply(item: AssistantItem): void {
    if (!item.isFailed) this.takeOutStoredTwice(item);
    if (item.blocks.length === 0 && !item.isFailed) return;
    if (this.sawResult && !continuesReply(item, this.lastReply)) this.span++;
    this.sawResult = false;
    this.lastReply = item;
    for (const site of callSitesOf(item)) this.historyOf(site.call.id).open(site, this.span);
  }

  private takeOutStoredTwice(item: AssistantItem): void {
    const kept = item.blocks.filter((block) => {
      if (block.type !== "callSite" || !this.historyOf(block.call.id).isStoredTwice(block, this.turn)) return true;
      this.report("duplicate-call", item.recordId, block.call.id);
      return false;
    });
    if (kept.length === item.blocks.length) return;
    const isOnlyThinking = kept.every((block) => block.type === "thinking");
    for (const block of isOnlyThinking ? kept : []) {
      if (block.type === "thinking") this.report("thinking-removed", item.recordId, block.thinking);
    }
    item.blocks = isOnlyThinking ? [] : kept;
  }

  private takeResult(item: ResultItem): void {
    this.sawResult = true;
    const owner = this.historyOf(item.callId).takeOpen(this.span);
    if (owner === null) this.strays.push(item);
    else this.give(owner, item);
  }

  private give(owner: CallSite, item: ResultItem): void {
    owner.result = item;
    if (owner.owner.isFailed) this.report("result-of-dropped-turn", item.recordId, item.callId);
  }

  /** What stands with none of its calls goes home when there is exactly one home. */
  settle(rules: ReplayRules): void {
    const homes = new Map<string, readonly CallSite[]>();
    for (const item of this.strays) {
      const history = this.historyOf(item.callId);
      const open = homes.get(item.callId) ?? history.unanswered();
      homes.set(item.callId, open);
      const [home] = open;
      if (open.length === 1 && home !== undefined && isSameTool(home, item)) {
        homes.set(item.callId, []);
        this.give(home, item);
        if (!home.owner.isFailed) this.report("result-moved", item.recordId, null, home.owner.recordId);
      } else if (open.length === 0 && history.isKnown()) {
        this.report("duplicate-result", item.recordId, item.callId);
      } else {
        item.isShownAsText = rules.orphanResults === "text" && item.content.length > 0;
        this.report("orphan-result", item.recordId, item.callId, item.isShownAsText ? "text" : null);
      }
    }
  }
}

/** A call stored apart belongs to the reply before it; so do parts that bear the same reply id. */
export function continuesReply(item: AssistantItem, lastReply: AssistantItem | null): boolean {
  if (lastReply === null || lastReply.isFailed || item.isFailed) return false;
  return item.isFragment || (item.responseId !== null && item.responseId === lastReply.responseId);
}

function isSameTool(site: CallSite, item: ResultItem): boolean {
  return item.toolName === null || item.toolName === "" || item.toolName === site.call.name;
}
