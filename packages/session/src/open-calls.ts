import type { StoredRecord, ToolCallBlock } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import type { RecordedApproval } from "./approval-record.ts";
import type { TurnMark } from "./turn-mark.ts";

/**
 * States what is certain about a call without a result that no process runs. `approved` means that the decision came
 * while no turn ran, so the call did not run yet.
 */
export type CallState = "may-have-run" | "undecided" | "refused" | "approved";

/** Holds a decision. The words are those of a refusal. */
interface Decision {
  readonly isAllowed: boolean;
  readonly words: string | null;
}

interface KnownDecision extends Decision {
  /** Names the turn that may have run the call; null when no turn has begun since the decision. */
  startedBy: string | null;
}

/** Holds the calls of the newest reply that have no result, and the decisions on them, as the log states them. */
export class OpenCalls {
  /** Holds the seq of the reply. */
  seq = 0;
  /** Holds the time of the reply, in UTC milliseconds. */
  tsMs: number | null = null;
  /** Is true when no call of the reply runs without a decision in the log. */
  asksApproval = false;
  /** Names the last call of a reply that reached its length limit. The call may be incomplete. */
  cutOffId: string | null = null;
  readonly #calls = new Map<string, ToolCallBlock>();
  readonly #decisions = new Map<string, KnownDecision>();
  readonly #waiting = new Map<string, RecordedApproval>();

  get size(): number {
    return this.#calls.size;
  }

  get calls(): readonly ToolCallBlock[] {
    return [...this.#calls.values()];
  }

  /** Returns true for a call whose question was left without an answer when its turn ended, and has none since. */
  isWaiting(callId: string): boolean {
    return this.#waiting.has(callId) && !this.#decisions.has(callId);
  }

  /** Holds the question of a call that was left without an answer when its turn ended. */
  waiting(callId: string): RecordedApproval | null {
    return this.#waiting.get(callId) ?? null;
  }

  /** Returns the deadline of a question if it is over and has no answer. Null for every other call. */
  expiredAtMs(callId: string, nowMs: number): number | null {
    const expiresAtMs = this.#decisions.has(callId) ? null : (this.#waiting.get(callId)?.expiresAtMs ?? null);
    return expiresAtMs !== null && expiresAtMs <= nowMs ? expiresAtMs : null;
  }

  takeReply({ seq, tsMs }: StoredRecord, message: Fields): void {
    // A framework stores each call of a reply as a record of its own.
    if (message["fragment"] !== true) this.clear();
    this.seq = seq;
    this.tsMs = tsMs;
    const { content, stopReason } = message;
    // An interrupted reply is not sent again, and neither are its calls.
    if (!Array.isArray(content) || stopReason === "aborted" || stopReason === "error") return;
    for (const block of content as readonly (ToolCallBlock | Fields | null)[])
      if (isFields(block) && block["type"] === "toolCall") this.#calls.set(block["id"] as string, block as never);
    const last: unknown = content.at(-1);
    if (stopReason === "length" && isFields(last) && last["type"] === "toolCall") this.cutOffId = last["id"] as string;
  }

  takeResult(callId: string): void {
    this.#calls.delete(callId);
  }

  /** The first decision on a call holds. Records of other turns may name calls with the same id, and do not count. */
  takeApproval(approval: RecordedApproval, mark: TurnMark | null): void {
    const { callId, turnId, state, words } = approval;
    if ((mark !== null && mark.turnId !== turnId) || !this.#calls.has(callId)) return;
    if (state === "waiting") this.#waiting.set(callId, approval);
    else if (!this.#decisions.has(callId))
      this.#decisions.set(callId, {
        isAllowed: state === "allowed",
        words,
        // A turn whose mark lies before the window is open: its end would be a mark in the window.
        startedBy: mark === null || mark.state === "open" ? turnId : null,
      });
  }

  /** A turn that begins may run every call that was approved before. */
  takeOpenMark({ turnId }: TurnMark): void {
    for (const decision of this.#decisions.values()) decision.startedBy ??= turnId;
  }

  clear(): void {
    this.#calls.clear();
    this.#decisions.clear();
    this.#waiting.clear();
    this.asksApproval = false;
    this.cutOffId = null;
  }

  stateOf(callId: string): CallState {
    const decision = this.#decisions.get(callId);
    // A question proves that its call did not run, also in a reply of a framework, which has no record of its calls.
    const isAsked = this.asksApproval || this.#waiting.has(callId);
    if (decision === undefined) return isAsked ? "undecided" : "may-have-run";
    if (!decision.isAllowed) return "refused";
    return decision.startedBy === null ? "approved" : "may-have-run";
  }

  /** Returns the decision that holds; null without one. */
  decision(callId: string): Decision | null {
    const decision = this.#decisions.get(callId);
    return decision === undefined ? null : { isAllowed: decision.isAllowed, words: decision.words };
  }

  /** Returns the decision that a turn carries out. Null without one, and when another turn may have run the call. */
  decisionFor(turnId: string, callId: string): Decision | null {
    const decision = this.#decisions.get(callId);
    if (decision === undefined || (decision.isAllowed && decision.startedBy !== turnId)) return null;
    return decision;
  }
}
