import type { StoredRecord } from "@throughline/core";
import { outdatedSummaryIds, readUsage } from "@throughline/core/internal";
import type { GuardChange } from "@throughline/guard/internal";
import { isSameCut, readCallPart, type CallFacts, type CallPart } from "./call-record.ts";
import { readApproval, type InterruptedCall } from "./approval-record.ts";
import type { ThinkingRange } from "./leave-thinking-out.ts";
import { readTurnMark, type TurnMark } from "./turn-mark.ts";

/** The newest call whose size a provider measured, while nothing that was in it has changed. */
export interface MeasuredCall {
  readonly call: CallFacts;
  /** What the window held after it. */
  readonly occupancyTokens: number;
}

/** The newest turn of the window. */
export interface WindowTurn {
  readonly mark: TurnMark;
  /** Of its first mark. */
  readonly seq: number;
  readonly sinceMs: number | null;
  readonly text: string | null;
}

/** Records after which what was measured does not hold any more. */
const changingTypes: ReadonlySet<string> = new Set(["compaction", "reset", "context_edit", "leaf"]);
const changingKinds: ReadonlySet<unknown> = new Set(["throughline.edit", "throughline.redaction", "throughline.note"]);
/** True for records that change what those before them contribute. */
export function changesWindow({ type, record }: StoredRecord): boolean {
  return changingTypes.has(type) || changingKinds.has(record["customType"]);
}

/** True for records that start the window again. */
export function isCycleStart({ type }: StoredRecord): boolean {
  return type === "compaction" || type === "reset";
}

/** What the session has to know of its window beside the messages, kept up record by record. */
export class WindowFacts {
  /** What the guard shortened, in the order it did. */
  readonly keptChanges: GuardChange[] = [];
  /** Of the messages as they are rendered now: whatever changes them takes their thinking out by itself. */
  thinkingOut: ThinkingRange[] = [];
  measured: MeasuredCall | null = null;
  /** The newest call of the window; null after a compaction or a reset. */
  lastCall: CallFacts | null = null;
  /** No call record has the count of the newest reply: another program wrote it, or the window changed after it. */
  isCountInMessages = false;
  turn: WindowTurn | null = null;
  userMessages = 0;
  /** Calls of the newest reply that have no result yet: names by id. */
  openCalls: ReadonlyMap<string, string> = new Map();
  /** Decisions on calls of the newest reply, by id: whether they may run. */
  readonly #decisions = new Map<string, boolean>();
  /** Whether each call of the newest reply needs a decision. */
  #asksApproval = false;
  /** The id that its provider gave the newest reply. */
  replyId: string | null = null;
  /** Grows with every compaction and reset. */
  cycle = 0;
  /** A note says that a summary may repeat what was redacted. */
  hasOutdatedSummary = false;
  /** Some record sets a thinking level, on whichever branch. */
  hasThinkingLevel = false;
  /** Grows whenever the way to the summary may have changed. */
  changes = 0;
  #changedBy: CallFacts | null = null;

  take(stored: StoredRecord): void {
    const { type, record } = stored;
    if (type === "custom" && outdatedSummaryIds([stored]).size > 0) this.hasOutdatedSummary = true;
    if (type === "message") this.#takeMessage(record["message"]);
    else if (type === "custom") this.#takeCustom(stored);
    else if (type === "thinking_level_change") this.hasThinkingLevel = true;
    if (changesWindow(stored)) {
      this.measured = null;
      this.isCountInMessages = true;
      this.thinkingOut = [];
      this.changes += 1;
    }
    if (!isCycleStart(stored)) return;
    this.cycle += 1;
    this.lastCall = null;
  }

  /** The known state of a call of the newest reply that has no result and that no process runs. */
  interruptedCall(callId: string): InterruptedCall {
    const isAllowed = this.#decisions.get(callId);
    if (isAllowed === undefined) return this.#asksApproval ? "undecided" : "may-have-run";
    return isAllowed ? "may-have-run" : "refused";
  }

  /** The messages begin elsewhere than in the calls before: neither counts nor places of those hold. */
  forgetPlaces(): void {
    this.measured = null;
    this.isCountInMessages = false;
    this.thinkingOut = [];
  }

  #takeMessage(message: unknown): void {
    // Another program's record may hold anything there.
    if (typeof message !== "object" || message === null) return;
    const { role, content, toolCallId, responseId } = message as Readonly<Record<string, unknown>>;
    if (role === "assistant") {
      this.openCalls = callsOf(message as Readonly<Record<string, unknown>>);
      this.#decisions.clear();
      this.#asksApproval = false;
      if (readUsage((message as { readonly usage?: unknown }).usage) !== null) this.isCountInMessages = true;
      this.replyId = typeof responseId === "string" ? responseId : this.replyId;
    }
    if (role === "toolResult" && this.openCalls.has(toolCallId as string))
      this.openCalls = new Map([...this.openCalls].filter(([id]) => id !== toolCallId));
    if (role !== "user") return;
    this.userMessages += 1;
    this.openCalls = new Map();
    const { turn } = this;
    if (turn?.mark.state === "open" && turn.text === null) this.turn = { ...turn, text: textOfContent(content) };
  }

  #takeCustom(stored: StoredRecord): void {
    const part = readCallPart(stored.record);
    if (part !== null) {
      this.#takeCall(part);
      return;
    }
    const approval = readApproval(stored.record);
    if (approval !== null) this.#decisions.set(approval.callId, approval.isAllowed);
    const mark = readTurnMark(stored.record);
    if (mark === null) return;
    const goesOn = mark.state !== "open" && this.turn?.mark.turnId === mark.turnId ? this.turn : null;
    const { seq, tsMs: sinceMs } = stored;
    this.turn = goesOn === null ? { mark, seq, sinceMs, text: null } : { ...goesOn, mark };
  }

  #takeCall(part: CallPart): void {
    if (part.part === 2) {
      // The first part has set it; what was put in place of messages is not what the log gives.
      this.#keep(part);
      if (part.splice !== null && this.#changedBy?.turnId === part.turnId) this.measured = null;
      return;
    }
    const { call } = part;
    if (call.asksApproval === true) this.#asksApproval = true;
    if (!isSameCut(this.lastCall?.cut ?? null, call.cut)) this.thinkingOut = [];
    this.lastCall = call;
    this.#keep(call);
    this.#changedBy = call;
    // Our own reply, which its call record tells more about.
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

/** A reply that broke off is not sent again, and neither are its calls. */
function callsOf({ content, stopReason }: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  if (!Array.isArray(content) || stopReason === "aborted" || stopReason === "error") return new Map();
  return new Map(
    content.flatMap((block: Readonly<Record<string, unknown>> | null) =>
      block?.["type"] === "toolCall" ? [[block["id"] as string, block["name"] as string] as const] : [],
    ),
  );
}

/** The texts of a message's content. */
export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: { readonly type?: unknown; readonly text?: unknown } | null) =>
      block?.type === "text" && typeof block.text === "string" ? [block.text] : [],
    )
    .join("\n");
}
