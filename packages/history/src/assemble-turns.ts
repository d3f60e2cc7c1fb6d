import { continuesReply } from "./pair-calls.ts";
import type { ReportRepair } from "./repair.ts";
import type { AssistantItem, CallSite, ReplayItem, ResultItem, UserItem } from "./replay-item.ts";
import { madeUpTexts, type ReplayRules } from "./replay-rules.ts";
import type { AssistantTurn, ReplayImage, ReplayResult, ReplayText, ReplayTurn, UserTurn } from "./replay-turn.ts";
import { createCallIds, type CallIds } from "./tool-call-ids.ts";

/** Turns that alternate, and the ids that had to be changed in them. */
export interface AssembledTurns {
  readonly turns: readonly ReplayTurn[];
  readonly callIds: ReadonlyMap<string, string>;
}

export function assembleTurns(items: readonly ReplayItem[], rules: ReplayRules, report: ReportRepair): AssembledTurns {
  const assembly = new Assembly(items, rules, report);
  for (const [place, item] of items.entries()) assembly.take(item, place);
  return assembly.finish();
}

interface OpenReply {
  readonly turn: AssistantTurn;
  readonly sites: CallSite[];
  /** The last of the items it is made of. */
  last: AssistantItem;
  /** Where the last result of its calls stands in the log; -1 when there is none. */
  lastResultPlace: number;
}

class Assembly {
  private readonly rules: ReplayRules;
  private readonly report: ReportRepair;
  private readonly callIds: CallIds;
  private readonly turns: ReplayTurn[] = [];
  /** Where each item stands in the log. */
  private readonly places = new Map<ReplayItem, number>();
  /** The assistant turn that may still grow; its results come when it is closed. */
  private open: OpenReply | null = null;
  private sawResult = false;
  /** True while the only turn is the summary: a user message after it needs a reply between. */
  private isAfterSummary = false;
  private lastRecordId = "";

  constructor(items: readonly ReplayItem[], rules: ReplayRules, report: ReportRepair) {
    this.rules = rules;
    this.report = report;
    this.callIds = createCallIds(rules.callIds);
    for (const [place, item] of items.entries()) this.places.set(item, place);
  }

  take(item: ReplayItem, place: number): void {
    if (item.kind === "user") this.takeUser(item);
    else if (item.kind === "result") this.takeResult(item);
    else if (!item.isFailed && item.blocks.length > 0) this.takeReply(item, place);
  }

  private takeResult(item: ResultItem): void {
    this.sawResult = true;
    if (!item.isShownAsText) return;
    const blocks = [{ type: "text", text: madeUpTexts.orphanResult } as const, ...item.content];
    this.takeUser({ kind: "user", recordId: item.recordId, isSummary: false, blocks });
  }

  private takeUser(item: UserItem): void {
    this.close();
    const last = this.turns.at(-1);
    if (last?.role === "user" && this.isAfterSummary) {
      this.turns.push({ role: "assistant", blocks: [{ type: "text", text: madeUpTexts.acknowledgement }] });
      this.report("acknowledgement-added", this.lastRecordId, null, madeUpTexts.acknowledgement);
      this.turns.push({ role: "user", results: [], blocks: [...item.blocks] });
    } else if (last?.role === "user") {
      for (const block of item.blocks) last.blocks.push(block);
      this.report("user-merged", item.recordId, null, this.lastRecordId);
    } else {
      this.turns.push({ role: "user", results: [], blocks: [...item.blocks] });
    }
    this.isAfterSummary = item.isSummary && this.turns.length === 1;
    this.lastRecordId = item.recordId;
  }

  private takeReply(item: AssistantItem, place: number): void {
    if (this.open !== null && !this.belongsToOpen(item, place)) this.close();
    if (this.open === null) {
      if (this.turns.length === 0) this.addBootstrap(item.recordId);
      const turn: AssistantTurn = { role: "assistant", blocks: [] };
      this.turns.push(turn);
      this.open = { turn, sites: [], last: item, lastResultPlace: -1 };
    } else {
      this.report("assistant-merged", item.recordId, null, this.open.last.recordId);
      this.open.last = item;
    }
    for (const block of item.blocks) {
      if (block.type === "callSite") this.addCall(this.open, block);
      else this.open.turn.blocks.push(block);
    }
    this.sawResult = false;
    this.isAfterSummary = false;
    this.lastRecordId = item.recordId;
  }

  private addBootstrap(recordId: string): void {
    this.turns.push({ role: "user", results: [], blocks: [{ type: "text", text: madeUpTexts.bootstrap }] });
    this.report("bootstrap-added", recordId, null, madeUpTexts.bootstrap);
  }

  private addCall(open: OpenReply, site: CallSite): void {
    site.wireId = this.callIds.next(site.call.id);
    if (site.wireId !== site.call.id) this.report("call-id-changed", site.owner.recordId, site.call.id, site.wireId);
    open.sites.push(site);
    if (site.result !== null) open.lastResultPlace = Math.max(open.lastResultPlace, this.placeOf(site.result));
    open.turn.blocks.push({ type: "toolCall", id: site.wireId, name: site.call.name, arguments: site.call.arguments });
  }

  /** Whether a reply is a further part of the one before: two replies in a row must become one unless results come between. */
  private belongsToOpen(item: AssistantItem, place: number): boolean {
    const { open } = this;
    if (open === null || open.sites.length === 0) return true;
    if (this.sawResult) return continuesReply(item, open.last);
    // Results further down answer both: the calls were made side by side. Otherwise the first reply's turn ended there.
    const isAnsweredBelow = open.lastResultPlace > place;
    if (isAnsweredBelow || continuesReply(item, open.last)) return true;
    return open.last.stopReason === null && item.blocks.every((block) => block.type === "callSite");
  }

  private placeOf(item: ReplayItem): number {
    return this.places.get(item) ?? -1;
  }

  private close(): void {
    const { open } = this;
    if (open === null) return;
    this.open = null;
    this.dropLastThinking(open.turn, open.last.recordId);
    if (open.sites.length === 0) return;
    const turn: UserTurn = { role: "user", results: [], blocks: [] };
    this.turns.push(turn);
    const answered = open.sites.filter((site) => site.result !== null);
    answered.sort((one, other) => this.placeOf(one.result as ResultItem) - this.placeOf(other.result as ResultItem));
    for (const site of answered) this.addResult(turn, site, site.result as ResultItem);
    for (const site of open.sites) if (site.result === null) turn.results.push(this.synthesize(site));
  }

  /** No provider takes a reply that ends in thinking. */
  private dropLastThinking(turn: AssistantTurn, recordId: string): void {
    for (let last = turn.blocks.at(-1); last?.type === "thinking"; last = turn.blocks.at(-1)) {
      this.report("thinking-removed", recordId, last.thinking);
      turn.blocks.pop();
    }
  }

  private addResult(turn: UserTurn, site: CallSite, item: ResultItem): void {
    const result = { callId: site.wireId, content: item.content, isError: item.isError };
    if (!item.isError) {
      turn.results.push(result);
      return;
    }
    // An error result takes text only; its images follow the results.
    const texts = item.content.filter((block) => block.type === "text");
    const images = item.content.filter((block): block is ReplayImage => block.type === "image");
    if (images.length > 0) this.report("image-moved", item.recordId, "tool_result", "message");
    for (const image of images) turn.blocks.push(image);
    const said: readonly ReplayText[] =
      texts.length > 0 ? texts : [{ type: "text", text: madeUpTexts.emptyErrorResult }];
    turn.results.push({ ...result, content: said });
  }

  private synthesize(site: CallSite): ReplayResult {
    const text = site.owner.stopReason === "length" ? madeUpTexts.resultNotRun : madeUpTexts.resultMayHaveRun;
    this.report("result-synthesized", site.owner.recordId, site.call.id, text);
    return { callId: site.wireId, content: [{ type: "text", text }], isError: true };
  }

  finish(): AssembledTurns {
    this.close();
    if (this.turns.at(-1)?.role === "assistant") this.finishTrailing();
    return { turns: this.turns, callIds: this.callIds.originals };
  }

  private finishTrailing(): void {
    const last = this.turns.at(-1) as AssistantTurn;
    switch (this.rules.trailingAssistant) {
      case "remove":
        this.report(
          "trailing-assistant-removed",
          this.lastRecordId,
          last.blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n"),
        );
        this.turns.pop();
        return;
      case "continue":
        this.turns.push({ role: "user", results: [], blocks: [{ type: "text", text: madeUpTexts.continuation }] });
        this.report("continuation-added", this.lastRecordId, null, madeUpTexts.continuation);
        return;
      case "keep": {
        const block = last.blocks.at(-1);
        if (block?.type !== "text" || block.text === block.text.trimEnd()) return;
        last.blocks.splice(-1, 1, { type: "text", text: block.text.trimEnd() });
        this.report("trailing-space-removed", this.lastRecordId, block.text.slice(block.text.trimEnd().length), "");
      }
    }
  }
}
