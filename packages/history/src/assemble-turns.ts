import type { Steps } from "@throughline/core/internal";
import { sentThinking } from "./clean-reply.ts";
import { stepResults } from "./collect-steps.ts";
import type { MessageOrigins } from "./message-origins.ts";
import type { NeutralToolCall } from "./neutral-message.ts";
import { callsInOrder, type OpenReply } from "./open-reply.ts";
import { continuesReply } from "./pair-calls.ts";
import type { RepairedItem, ReportRepair } from "./repair.ts";
import type { AssistantItem, CallSite, ReplayItem, ResultItem, StepItem, SystemItem, UserItem } from "./replay-item.ts";
import { madeUpTexts, type ReplayRules, type TrailingAssistant } from "./replay-rules.ts";
import type { AssistantTurn, ReplayCall, ReplayResult, ReplayTurn, ReplayUserBlock, UserTurn } from "./replay-turn.ts";
import { createCallIds, createToolNames } from "./tool-call-ids.ts";

/** Assembles paired items into turns. A settled assembly serves as the base of later ones, which never change it. */
export class TurnAssembly {
  private readonly rules: ReplayRules;
  private readonly report: ReportRepair;
  private readonly base: TurnAssembly | null;
  private readonly callIds: ReturnType<typeof createCallIds>;
  private readonly toolNames: ReturnType<typeof createToolNames>;
  private readonly ownTurns: ReplayTurn[] = [];
  private baseCount = 0;
  private readonly itemIds = new Set<string>();
  /** Holds the assistant turn that may still grow. Its results follow when it is closed. */
  private open: OpenReply | null = null;
  private sawResult = false;
  private hasBegun = false;
  /** Is true while the summary is the only turn. A user message after it then needs a reply in between. */
  private isAfterSummary = false;
  /** Is true after a summary in the provider's own format. A reply after it needs a user message in between. */
  private isAfterSignedSummary = false;
  private lastItem: RepairedItem = { recordId: "", place: 0 };
  /** Maps replies to their items. It exists only if a trailing reply is removed: the repairs must name its items. */
  private readonly itemsOf: WeakMap<AssistantTurn, RepairedItem[]> | null;
  private readonly origins: MessageOrigins | null;

  constructor(
    rules: ReplayRules,
    report: ReportRepair,
    base: TurnAssembly | null = null,
    origins: MessageOrigins | null = null,
  ) {
    this.rules = rules;
    this.origins = origins;
    this.report = report;
    this.base = base;
    this.callIds = createCallIds(rules.callIds, base?.callIds.state ?? null);
    this.toolNames = createToolNames(rules.toolNames, base?.toolNames.given ?? null);
    this.itemsOf = base?.itemsOf ?? (rules.trailingAssistant === "remove" ? new WeakMap() : null);
    if (base === null) return;
    this.baseCount = base.ownTurns.length;
    this.hasBegun = base.hasBegun;
    this.isAfterSummary = base.isAfterSummary;
    this.isAfterSignedSummary = base.isAfterSignedSummary;
    this.lastItem = base.lastItem;
  }

  *takeAll(items: readonly ReplayItem[]): Steps<void> {
    for (const item of items) {
      this.take(item);
      yield;
    }
  }

  /** Ends a settled beginning, so that no later item joins its last reply. */
  settle(): void {
    this.close();
  }

  finish(): void {
    this.close();
    // Instructions alone ask nothing, so a bootstrap message must follow them.
    if (!this.hasBegun && this.rules.beginsWithUser && this.lastTurn() !== undefined) this.addBootstrap(this.lastItem);
    if (this.lastTurn()?.role === "assistant") this.finishTrailing(this.rules.trailingAssistant);
  }

  /** Returns how many turns of the base are still valid, and the turns after them. */
  turns(): { readonly baseCount: number; readonly turns: readonly ReplayTurn[] } {
    return { baseCount: this.baseCount, turns: this.ownTurns };
  }

  /** Returns the changed ids lazily, because providers with their own id format change the id of every call. */
  changedNames(): {
    readonly callIds: () => ReadonlyMap<string, string>;
    readonly toolNames: ReadonlyMap<string, string>;
  } {
    return { callIds: this.callIds.originals(), toolNames: this.toolNames.originals };
  }

  private lastTurn(): ReplayTurn | undefined {
    return this.ownTurns.at(-1) ?? this.base?.ownTurns[this.baseCount - 1];
  }

  /** Returns the last turn for modification. It copies a turn of the base, because the base must not change. */
  private ownLastTurn(): ReplayTurn | undefined {
    const last = this.lastTurn();
    if (last === undefined || this.ownTurns.length > 0) return last;
    this.baseCount--;
    const copy: ReplayTurn =
      last.role === "user"
        ? { ...last, results: [...last.results], blocks: [...last.blocks] }
        : last.role === "assistant"
          ? { ...last, blocks: [...last.blocks] }
          : last;
    this.ownTurns.push(copy);
    if (last.role === "assistant") this.itemsOf?.set(copy as AssistantTurn, [...(this.itemsOf.get(last) ?? [])]);
    return copy;
  }

  private take(item: ReplayItem): void {
    if (item.kind === "user") this.takeUser(item);
    else if (item.kind === "system") this.takeSystem(item);
    else if (item.kind === "result") this.takeResult(item);
    else if (item.kind === "step") this.takeStep(item);
    else if (!item.isUnsent && item.kept.length > 0) this.takeReply(item);
  }

  private takeResult(item: ResultItem): void {
    this.sawResult = true;
    if (item.shownAs === null) return;
    const words = item.shownAs === "late" ? madeUpTexts.lateResult : madeUpTexts.orphanResult;
    const blocks = [
      { type: "text", text: words } as const,
      ...item.content.map((block) => this.outsideResult(block, item)),
    ];
    this.takeUser({ kind: "user", recordId: item.recordId, place: item.place, isSummary: false, blocks });
  }

  private takeSystem(item: SystemItem): void {
    this.close();
    this.push({ role: "system", recordId: item.recordId, text: item.text });
    this.isAfterSummary = false;
    this.lastItem = item;
  }

  private takeUser(item: UserItem): void {
    this.close();
    const last = this.lastTurn();
    if (last?.role === "user") this.followUser(item, last);
    else this.pushUser(item.blocks, item.recordId);
    this.isAfterSummary = item.isSummary && !this.hasBegun;
    this.isAfterSignedSummary = false;
    this.hasBegun = true;
    this.lastItem = item;
  }

  private followUser(item: UserItem, last: UserTurn): void {
    if (this.rules.repliesAfterResults && last.results.length > 0) {
      this.pushReply(madeUpTexts.replyAfterResults);
      this.report("reply-added", item, null, madeUpTexts.replyAfterResults);
      this.pushUser(item.blocks, item.recordId);
    } else if (!this.rules.mergesUsers) {
      this.pushUser(item.blocks, item.recordId);
    } else if (this.isAfterSummary) {
      this.pushReply(madeUpTexts.acknowledgement);
      this.report("acknowledgement-added", this.lastItem, null, madeUpTexts.acknowledgement);
      this.pushUser(item.blocks, item.recordId);
    } else {
      const own = this.ownLastTurn() as UserTurn;
      for (const block of item.blocks) own.blocks.push(block);
      this.origins?.add(own, item.recordId);
      this.report("user-merged", item, null, this.lastItem.recordId);
    }
  }

  private pushUser(blocks: readonly ReplayUserBlock[], recordId: string | null): void {
    this.push({ role: "user", recordId, results: [], blocks: [...blocks] });
  }

  private push(turn: ReplayTurn): void {
    this.ownTurns.push(turn);
    this.origins?.add(turn, turn.recordId);
  }

  private pushReply(text: string): void {
    const madeUp = { recordId: null, lastRecordId: null };
    this.ownTurns.push({ role: "assistant", ...madeUp, blocks: [{ type: "text", text }] });
  }

  private takeReply(item: AssistantItem): void {
    if (this.open !== null && !this.belongsToOpen(item)) this.close();
    if (this.open === null) {
      if (!item.isSummary) this.begin(item);
      const { recordId } = item;
      const turn: AssistantTurn = { role: "assistant", recordId, lastRecordId: recordId, blocks: [] };
      this.push(turn);
      this.open = { turn, calls: [], last: item, lastResultPlace: -1 };
      this.itemsOf?.set(turn, [item]);
      this.addBlocks(this.open, item, item.kept);
    } else {
      this.report("assistant-merged", item, null, this.open.last.recordId);
      const isAnother = this.open.last.stopReason !== null && !continuesReply(item, this.open.last);
      this.open.last = item;
      this.open.turn.lastRecordId = item.recordId;
      this.itemsOf?.get(this.open.turn)?.push(item);
      this.origins?.add(this.open.turn, item.recordId);
      this.addBlocks(this.open, item, isAnother ? this.withoutBound(item) : item.kept);
    }
    this.sawResult = false;
    this.hasBegun = true;
    this.isAfterSummary = false;
    this.isAfterSignedSummary = item.isSummary;
    this.lastItem = item;
  }

  /** Adds a reply with the results of all its calls. The outcome equals taking each item, without any search. */
  private takeStep(step: StepItem): void {
    this.close();
    this.begin(step);
    const { content } = step.reply;
    const blocks = content.slice() as AssistantTurn["blocks"];
    let isFirstCall = true;
    for (let at = 0; at < content.length; at++) {
      const block = content[at] as (typeof content)[number];
      if (block.type === "thinking") blocks[at] = sentThinking(block, null);
      if (block.type !== "toolCall") continue;
      blocks[at] = this.sentCall(step, block, null, isFirstCall);
      isFirstCall = false;
    }
    const { recordId } = step;
    const turn: AssistantTurn = { role: "assistant", recordId, lastRecordId: recordId, blocks };
    this.push(turn);
    this.itemsOf?.set(turn, [step]);
    if (!isFirstCall) {
      const results = stepResults(step, blocks, this.rules.resultsInCallOrder);
      this.ownTurns.push({ role: "user", recordId: null, results, blocks: [] });
    }
    this.hasBegun = true;
    this.isAfterSummary = false;
    this.isAfterSignedSummary = false;
    this.lastItem = step;
  }

  /** The provider rejects a first reply without a user message before it, so this method adds one. */
  private begin(reply: RepairedItem): void {
    if ((!this.hasBegun || this.isAfterSignedSummary) && this.rules.beginsWithUser) this.addBootstrap(reply);
  }

  /** The log lacks the message between this reply and the finished one before, so thinking bound to it is invalid. */
  private withoutBound(item: AssistantItem): AssistantItem["kept"] {
    if (!this.rules.bindsThinking) return item.kept;
    return item.kept.filter((block) => {
      if (block.type === "thinking") this.report("thinking-removed", item, block.thinking);
      return block.type !== "thinking";
    });
  }

  private addBlocks(open: OpenReply, item: AssistantItem, blocks: AssistantItem["kept"]): void {
    for (const block of blocks) this.addBlock(open, item, block);
  }

  private addBlock(open: OpenReply, item: AssistantItem, block: AssistantItem["kept"][number]): void {
    if (block.type === "callSite") {
      this.addCall(open, block);
      return;
    }
    if (block.type === "thinking" && block.itemId !== null) {
      if (this.itemIds.has(block.itemId) || this.base?.itemIds.has(block.itemId) === true) {
        this.report("thinking-removed", item, block.thinking);
        return;
      }
      this.itemIds.add(block.itemId);
    }
    open.turn.blocks.push(block);
  }

  private addBootstrap(item: RepairedItem): void {
    this.pushUser([{ type: "text", text: madeUpTexts.bootstrap }], null);
    this.report("bootstrap-added", item, null, madeUpTexts.bootstrap);
  }

  private addCall(open: OpenReply, site: CallSite): void {
    const sent = this.sentCall(site.owner, site.call, site.signature, open.calls.length === 0);
    open.calls.push({ site, id: sent.id, name: sent.name });
    if (site.result !== null) open.lastResultPlace = Math.max(open.lastResultPlace, site.result.place);
    open.turn.blocks.push(sent);
  }

  private sentCall(owner: RepairedItem, call: NeutralToolCall, own: string | null, isFirst: boolean): ReplayCall {
    const id = this.callIds.next(call.id);
    if (id !== call.id) this.report("call-id-changed", owner, call.id, id);
    const name = this.toolNames.of(call.name);
    if (name !== call.name) this.report("tool-name-changed", owner, call.name, name);
    let signature = own;
    // Providers require a signature on the first call of a step only.
    if (signature === null && isFirst && this.rules.callSignature !== null) {
      signature = this.rules.callSignature;
      this.report("signature-replaced", owner, null, signature);
    }
    return { type: "toolCall", id, name, arguments: call.arguments, signature };
  }

  /** Checks whether a reply continues the open one. Providers with alternating roles need such replies merged. */
  private belongsToOpen(item: AssistantItem): boolean {
    const open = this.open as OpenReply;
    if (this.isAfterSignedSummary) return false;
    if (open.calls.length === 0) return this.rules.mergesReplies || continuesReply(item, open.last);
    if (this.sawResult) return continuesReply(item, open.last);
    // A result after the new reply shows that the model made the calls of both replies together, in one turn.
    const isAnsweredBelow = open.lastResultPlace > item.place;
    if (isAnsweredBelow || continuesReply(item, open.last)) return true;
    return open.last.stopReason === null && item.kept.every((block) => block.type === "callSite");
  }

  private close(): void {
    const { open } = this;
    if (open === null) return;
    this.open = null;
    this.dropLastThinking(open.turn, open.last);
    if (open.turn.blocks.length === 0) {
      this.report("empty-message-removed", open.last, "assistant");
      this.ownTurns.pop();
      return;
    }
    if (open.calls.length === 0) return;
    const answers: UserTurn = { role: "user", recordId: null, results: [], blocks: [] };
    for (const call of callsInOrder(open.calls, this.rules)) {
      const { result } = call.site;
      const before = answers.blocks.length;
      answers.results.push(result === null ? this.synthesize(call) : this.resultOf(call, result, answers.blocks));
      if (answers.blocks.length > before) this.origins?.add(answers, result?.recordId ?? null);
    }
    this.ownTurns.push(answers);
  }

  /** No provider accepts a reply that ends in thinking. */
  private dropLastThinking(turn: AssistantTurn, item: RepairedItem): void {
    for (let last = turn.blocks.at(-1); last?.type === "thinking"; last = turn.blocks.at(-1)) {
      this.report("thinking-removed", item, last.thinking);
      turn.blocks.pop();
    }
  }

  /**
   * Builds the result of a call.
   * @param after receives the blocks that the provider does not allow inside a result; they follow the results
   */
  private resultOf(call: OpenReply["calls"][number], item: ResultItem, after: ReplayUserBlock[]): ReplayResult {
    const { resultImages, emptyResults } = this.rules;
    const takesImages = resultImages === "inside" || (resultImages === "inside-unless-error" && !item.isError);
    let inside = item.content;
    if (!takesImages && inside.some((block) => block.type !== "text")) {
      const blocks = inside.map((block) => this.outsideResult(block, item));
      const moved = blocks.filter((block) => block.type !== "text");
      if (moved.length > 0) this.report("image-moved", item, "tool_result", "message");
      for (const block of moved) after.push(block);
      inside = blocks.filter((block) => block.type === "text");
    }
    if (inside.length === 0 && (emptyResults === "never" || (item.isError && emptyResults === "not-in-errors"))) {
      const text = item.isError ? madeUpTexts.emptyErrorResult : madeUpTexts.emptyResult;
      this.report("empty-result-filled", item, null, text);
      inside = [{ type: "text", text }];
    }
    return { recordId: item.recordId, callId: call.id, name: call.name, content: inside, isError: item.isError };
  }

  /** Returns a block that a user message may hold. A block that is allowed only in results becomes a line of text. */
  private outsideResult(block: ReplayUserBlock, item: ResultItem): ReplayUserBlock {
    const type = block.type === "raw" ? String(block.block["type"]) : null;
    if (type === null || this.rules.carriedBlocks.user.has(type)) return block;
    const text = `[block of type ${type} left out]`;
    this.report("unknown-block-replaced", item, type, text);
    return { type: "text", text };
  }

  private synthesize({ site, id, name }: OpenReply["calls"][number]): ReplayResult {
    const text = site.owner.stopReason === "length" ? madeUpTexts.resultNotRun : madeUpTexts.resultMayHaveRun;
    this.report("result-synthesized", site.owner, site.call.id, text);
    return { recordId: null, callId: id, name, content: [{ type: "text", text }], isError: true };
  }

  private finishTrailing(wanted: TrailingAssistant): void {
    const last = this.ownLastTurn() as AssistantTurn;
    // A summary is not a reply: the model does not continue it, and it must not be removed.
    const isSummary = last.blocks.every((block) => block.type === "raw" && block.block["type"] === "compaction");
    switch (isSummary ? "continue" : wanted) {
      case "remove": {
        const text = last.blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n");
        for (const item of this.itemsOf?.get(last) ?? [this.lastItem])
          this.report("trailing-assistant-removed", item, text);
        this.ownTurns.pop();
        // Without merging, several replies may stand at the end.
        if (this.lastTurn()?.role === "assistant") this.finishTrailing(wanted);
        return;
      }
      case "continue":
        this.pushUser([{ type: "text", text: madeUpTexts.continuation }], null);
        this.report("continuation-added", this.lastItem, null, madeUpTexts.continuation);
        return;
      case "keep": {
        const block = last.blocks.at(-1);
        if (block?.type !== "text" || block.text === block.text.trimEnd()) return;
        const text = block.text.trimEnd();
        last.blocks.splice(-1, 1, { ...block, text });
        this.report("trailing-space-removed", this.lastItem, block.text.slice(text.length), "");
      }
    }
  }
}
