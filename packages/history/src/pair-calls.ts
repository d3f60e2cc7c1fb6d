import type { ReportRepair } from "./repair.ts";
import { callSitesOf, type AssistantItem, type CallSite, type ReplayItem, type ResultItem } from "./replay-item.ts";
import type { ReplayRules } from "./replay-rules.ts";

/**
 * Gives every result to the call it answers, by occurrence and not by id alone: first among the calls it stands with;
 * then, when it stands elsewhere, to the one unanswered call that bears its id. Calls stored twice are taken out.
 */
export function pairCalls(items: readonly ReplayItem[], rules: ReplayRules, report: ReportRepair): void {
  const pairing = new Pairing(items, report);
  for (const item of items) pairing.take(item);
  pairing.settle(rules);
}

class Pairing {
  private readonly report: ReportRepair;
  private readonly sites = new Map<string, CallSite[]>();
  private readonly resultCounts = new Map<string, number>();
  private readonly strays: ResultItem[] = [];
  private span = 0;
  private turn = 0;
  private lastReply: AssistantItem | null = null;
  /** True when a result came after the last reply: the next reply is a new one. */
  private sawResult = false;

  constructor(items: readonly ReplayItem[], report: ReportRepair) {
    this.report = report;
    for (const item of items) {
      if (item.kind === "result") this.resultCounts.set(item.callId, (this.resultCounts.get(item.callId) ?? 0) + 1);
    }
  }

  take(item: ReplayItem): void {
    if (item.kind === "assistant") this.takeReply(item);
    else if (item.kind === "result") this.takeResult(item);
    else {
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
    for (const site of callSitesOf(item)) {
      site.span = this.span;
      site.turn = this.turn;
      const known = this.sites.get(site.call.id);
      if (known === undefined) this.sites.set(site.call.id, [site]);
      else known.push(site);
    }
  }

  private takeOutStoredTwice(item: AssistantItem): void {
    const own: CallSite[] = [];
    const kept: AssistantItem["blocks"] = [];
    for (const block of item.blocks) {
      if (block.type !== "callSite") {
        kept.push(block);
      } else if (this.isStoredTwice(block, own)) {
        this.report("duplicate-call", item.recordId, block.call.id);
      } else {
        own.push(block);
        kept.push(block);
      }
    }
    if (kept.length === item.blocks.length) return;
    const isOnlyThinking = kept.every((block) => block.type === "thinking");
    for (const block of isOnlyThinking ? kept : []) {
      if (block.type === "thinking") this.report("thinking-removed", item.recordId, block.thinking);
    }
    item.blocks = isOnlyThinking ? [] : kept;
  }

  /**
   * Some writers store a call in its reply and once more as a record of its own. A provider that uses an id again in
   * one turn differs from that in the arguments, or in that both calls have a result.
   */
  private isStoredTwice(site: CallSite, own: readonly CallSite[]): boolean {
    const known = this.sites.get(site.call.id) ?? [];
    const results = this.resultCounts.get(site.call.id) ?? 0;
    const beside = own.filter((other) => other.call.id === site.call.id);
    if (beside.some((other) => isSameCall(other, site))) return results <= known.length + beside.length;
    for (let index = known.length - 1; index >= 0; index--) {
      const earlier = known[index] as CallSite;
      if (earlier.turn !== this.turn) break;
      if (earlier.owner.isFailed || !isSameCall(earlier, site)) continue;
      if (earlier.result === null || results <= known.length) return true;
    }
    return false;
  }

  private takeResult(item: ResultItem): void {
    this.sawResult = true;
    const known = this.sites.get(item.callId) ?? [];
    let owner: CallSite | null = null;
    for (let index = known.length - 1; index >= 0 && known[index]?.span === this.span; index--) {
      const site = known[index] as CallSite;
      // A reply that was made anew after it failed has the better claim.
      if (site.result === null && (owner === null || owner.owner.isFailed || !site.owner.isFailed)) owner = site;
    }
    if (owner === null) this.strays.push(item);
    else this.give(owner, item);
  }

  private give(owner: CallSite, item: ResultItem): void {
    owner.result = item;
    if (owner.owner.isFailed) this.report("result-of-dropped-turn", item.recordId, item.callId);
  }

  /** What stands with none of its calls goes home when there is exactly one home. */
  settle(rules: ReplayRules): void {
    const homes = new Map<string, CallSite[]>();
    for (const item of this.strays) {
      const known = this.sites.get(item.callId) ?? [];
      let open = homes.get(item.callId);
      if (open === undefined) homes.set(item.callId, (open = openSites(known)));
      const [home] = open;
      if (open.length === 1 && home !== undefined && isSameTool(home, item)) {
        homes.set(item.callId, []);
        this.give(home, item);
        if (!home.owner.isFailed) this.report("result-moved", item.recordId, null, home.owner.recordId);
      } else if (open.length === 0 && known.length > 0) {
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

function openSites(known: readonly CallSite[]): CallSite[] {
  const open = known.filter((site) => site.result === null);
  return open.some((site) => !site.owner.isFailed) ? open.filter((site) => !site.owner.isFailed) : open;
}

function isSameTool(site: CallSite, item: ResultItem): boolean {
  return item.toolName === null || item.toolName === "" || item.toolName === site.call.name;
}

function isSameCall(one: CallSite, other: CallSite): boolean {
  return one.call.name === other.call.name && sortedJson(one.call.arguments) === sortedJson(other.call.arguments);
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, field: unknown) => {
    if (typeof field !== "object" || field === null || Array.isArray(field)) return field;
    return Object.fromEntries(Object.entries(field).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
