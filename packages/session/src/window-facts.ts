import type { StoredRecord } from "@throughline/core";
import { isContinueMessage, isFields, outdatedSummaryIds, readUsage } from "@throughline/core/internal";
import { TitleFinder } from "@throughline/history/internal";
import type { GuardChange } from "@throughline/guard/internal";
import { isSameCall, isSameCut, readCallPart, type CallFacts, type CallPart } from "./call-record.ts";
import { readApproval } from "./approval-record.ts";
import type { ThinkingRange } from "./leave-thinking-out.ts";
import { OpenCalls } from "./open-calls.ts";
import { readTurnMark, type TurnMark } from "./turn-mark.ts";

/**
 * Holds the newest call that a provider measured. The field is null once a later record changed the messages of the
 * call.
 */
export interface MeasuredCall {
  readonly call: CallFacts;
  /** Holds the tokens of the window after the call. */
  readonly occupancyTokens: number;
}

export interface WindowTurn {
  readonly mark: TurnMark;
  /** Holds the seq of the turn's first mark. */
  readonly seq: number;
  readonly sinceMs: number | null;
  readonly text: string | null;
}

/** After one of these records the measured size no longer holds. */
const changingTypes: ReadonlySet<string> = new Set(["compaction", "reset", "context_edit", "leaf"]);
const changingKinds: ReadonlySet<unknown> = new Set(["throughline.edit", "throughline.redaction", "throughline.note"]);
/** Returns true for records that change the effect of earlier records on the messages. */
export function changesWindow({ type, record }: StoredRecord): boolean {
  return changingTypes.has(type) || changingKinds.has(record["customType"]);
}

/** Returns true for records after which the window starts again. */
export function isCycleStart({ type }: StoredRecord): boolean {
  return type === "compaction" || type === "reset";
}

/**
 * Holds facts about the window beside the messages. Each record updates them, so that the window need not be read
 * again.
 */
export class WindowFacts {
  /** Holds the changes of the guard, in their order, so that later requests repeat them. */
  readonly keptChanges: GuardChange[] = [];
  /**
   * The ranges count messages as they are rendered now. A record that changes the messages clears the list, because the
   * new rendering leaves that thinking out itself.
   */
  thinkingOut: ThinkingRange[] = [];
  measured: MeasuredCall | null = null;
  /** Holds the newest call of the window; null after a compaction or a reset. */
  lastCall: CallFacts | null = null;
  /**
   * Is true when no call record has the count of the newest reply. Another program wrote the reply, or the window
   * changed after it.
   */
  isCountInMessages = false;
  turn: WindowTurn | null = null;
  /** Holds the newest main record. The head may be another one after a rewind. */
  newest: StoredRecord | null = null;
  userMessages = 0;
  /** Finds the title of the conversation in its first messages. */
  readonly titles: TitleFinder = new TitleFinder();
  /** Holds the calls of the newest reply without a result. */
  readonly openCalls: OpenCalls = new OpenCalls();
  replyId: string | null = null;
  /** Counts the compactions and resets. */
  cycle = 0;
  /** Is true when a note states that a summary may repeat redacted content. */
  hasOutdatedSummary = false;
  /** Is true when some record sets a thinking level, on any branch. */
  hasThinkingLevel = false;
  /** Increases whenever the current summary may have changed. */
  changes = 0;
  #changedBy: CallFacts | null = null;

  take(stored: StoredRecord): void {
    const { type } = stored;
    if (!stored.side) this.newest = stored;
    if (type === "custom" && outdatedSummaryIds([stored]).size > 0) this.hasOutdatedSummary = true;
    if (type === "message") this.#takeMessage(stored);
    else if (type === "custom") this.#takeCustom(stored);
    else if (type === "thinking_level_change") this.hasThinkingLevel = true;
    if (changesWindow(stored)) {
      this.measured = null;
      this.isCountInMessages = true;
      this.thinkingOut = [];
      this.changes += 1;
    }
    // A rewind or a reset leaves the reply, so its calls are over.
    if (type === "leaf" || type === "reset") this.openCalls.clear();
    if (!isCycleStart(stored)) return;
    this.cycle += 1;
    this.lastCall = null;
  }

  /** The messages begin elsewhere than in earlier calls. Neither the counts nor the positions of those calls hold. */
  forgetPlaces(): void {
    this.measured = null;
    this.isCountInMessages = false;
    this.thinkingOut = [];
  }

  #takeMessage(stored: StoredRecord): void {
    const { message } = stored.record;
    // A record of another program may hold any value here.
    if (!isFields(message)) return;
    const { role, content, toolCallId, responseId } = message;
    if (role === "assistant") {
      this.openCalls.takeReply(stored, message);
      if (readUsage((message as { readonly usage?: unknown }).usage) !== null) this.isCountInMessages = true;
      this.replyId = typeof responseId === "string" ? responseId : this.replyId;
    }
    if (role === "toolResult") this.openCalls.takeResult(toolCallId as string);
    if (role !== "user") return;
    this.userMessages += 1;
    this.titles.take(stored.record);
    this.openCalls.clear();
    const { turn } = this;
    if (isContinueMessage(stored.record)) return;
    if (turn?.mark.state === "open" && turn.text === null) this.turn = { ...turn, text: textOfContent(content) };
  }

  #takeCustom(stored: StoredRecord): void {
    const part = readCallPart(stored.record);
    if (part !== null) {
      this.#takeCall(part);
      return;
    }
    const approval = readApproval(stored.record);
    if (approval !== null) this.openCalls.takeApproval(approval, this.turn?.mark ?? null);
    const mark = readTurnMark(stored.record);
    if (mark === null) return;
    const goesOn = mark.state !== "open" && this.turn?.mark.turnId === mark.turnId ? this.turn : null;
    if (mark.state === "open") this.openCalls.takeOpenMark(mark);
    const { seq, tsMs: sinceMs } = stored;
    this.turn = goesOn === null ? { mark, seq, sinceMs, text: null } : { ...goesOn, mark };
  }

  #takeCall(part: CallPart): void {
    if (part.part === 2) {
      // The first record of the call set `measured`. A splice makes the sent messages differ from those that the log
      // gives.
      this.#keep(part);
      const { lastCall } = this;
      if (part.output !== undefined && lastCall !== null && isSameCall(lastCall, part))
        this.lastCall = { ...lastCall, output: part.output };
      if (part.splice !== null && this.#changedBy?.turnId === part.turnId) this.measured = null;
      return;
    }
    const { call } = part;
    if (call.asksApproval === true) this.openCalls.asksApproval = true;
    if (!isSameCut(this.lastCall?.cut ?? null, call.cut)) this.thinkingOut = [];
    this.lastCall = call;
    this.#keep(call);
    this.#changedBy = call;
    // The reply is Throughline's own, and its call record states its count better.
    this.isCountInMessages = false;
    if (call.outcome !== "answered" || call.actual === null) return;
    const occupancyTokens = call.actual.reduce((sum, tokens) => sum + tokens, 0);
    this.measured = call.splice === null ? { call, occupancyTokens } : null;
  }

  #keep({ changes, thinkingOut }: Pick<CallFacts, "changes" | "thinkingOut">): void {
    this.keptChanges.push(...changes);
    if (thinkingOut !== null) this.thinkingOut.push(thinkingOut);
  }
}

export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: { readonly type?: unknown; readonly text?: unknown } | null) =>
      block?.type === "text" && typeof block.text === "string" ? [block.text] : [],
    )
    .join("\n");
}
