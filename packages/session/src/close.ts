import { ThroughlineError, type AssistantMessage, type Clock, type Message, type RecordDraft } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import { waitingSign, type WaitingCalls } from "@throughline/core/internal";
import { modelFailure } from "@throughline/guard/internal";
import type { Gauge } from "@throughline/tokens";
import type { CallResult } from "./call-model.ts";
import { callDrafts, type CallFacts } from "./call-record.ts";
import type { HoldBack } from "./held-deltas.ts";
import type { KeyedTurn } from "./keyed-turn.ts";
import { lastReply, messageDraft, toolCallsOf } from "./message-parts.ts";
import { readApproval } from "./approval-record.ts";
import { pendingApprovals } from "./pending-approvals.ts";
import { resultDraft } from "./run-tools.ts";
import type { SendDenial } from "./send-denial.ts";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import { newTitle, withdrawRedactedTitle } from "./session-title.ts";
import type { BeforeCloseContext, ClosingDecision } from "./session-options.ts";
import type { TurnLease } from "./turn-lease.ts";
import { type TurnLedger, usageOfCalls } from "./turn-ledger.ts";
import type { TurnMark } from "./turn-mark.ts";
import type { TurnSettings } from "./turn-settings.ts";
import type { Turn } from "./turn.ts";
import { textOfContent } from "./window-facts.ts";

export interface TurnEnd {
  readonly outcome: Turn["outcome"];
  readonly denial: SendDenial | null;
}

export interface TurnCloseOptions {
  readonly log: SessionLog;
  readonly ledger: TurnLedger;
  readonly settings: TurnSettings;
  readonly clock: Clock;
  readonly turn: TurnLease;
  readonly emit: Emit | null;
}

/** Ends a turn in each of its ways. The last records and the closing mark are one commit. */
export class TurnClose {
  /** Is true when a call of this turn carried a system prompt. */
  isSystemSent = false;
  /** Is true when a call of this turn introduced the group. */
  isIntroduced = false;
  /** Holds the title that this turn gave its session; null when it gave none. */
  title: string | null = null;
  readonly #options: TurnCloseOptions;

  constructor(options: TurnCloseOptions) {
    this.#options = options;
  }

  async done(drafts: readonly RecordDraft[], result: CallResult, entry: ClosingDecision["entry"]): Promise<TurnEnd> {
    const { log, settings } = this.#options;
    const title = newTitle(log, settings);
    const titled = title === null ? {} : { title, titleBy: "rules" };
    await this.#close(drafts, { state: "done" }, result, { ...titled, ...entry });
    this.title = title;
    if (title !== null) await withdrawRedactedTitle(log, title);
    return { outcome: "done", denial: null };
  }

  /** Ends a turn whose answer a tool took. */
  async answered(reply: AssistantMessage): Promise<TurnEnd> {
    await this.#close([], { state: "done" }, null, this.decision("done", reply).entry);
    return { outcome: "done", denial: null };
  }

  async atStepLimit(reply: AssistantMessage): Promise<TurnEnd> {
    await this.#close([], { state: "step-limit" }, null, this.decision("step-limit", reply).entry);
    return { outcome: "step-limit", denial: null };
  }

  /**
   * Ends a turn whose open calls wait for a decision. The entry states it too, so that lists need not read the log.
   *
   * @param questions the records of the questions
   */
  async waiting(questions: readonly RecordDraft[]): Promise<TurnEnd> {
    const { log, emit, clock } = this.#options;
    await this.#close(questions, { state: "waiting" }, null);
    emit?.({ name: "approval.waiting", approvals: pendingApprovals(log, clock.nowMs()) });
    return { outcome: "waiting", denial: null };
  }

  async denied(denial: SendDenial): Promise<TurnEnd> {
    await this.#close([], { state: "denied", denial }, null);
    return { outcome: "denied", denial };
  }

  /** Stores what was received, answers its calls, and closes the turn. */
  async aborted(message: AssistantMessage | null, calls: readonly CallFacts[]): Promise<TurnEnd> {
    this.#assertOurs();
    const reply = message === null ? null : { ...message, stopReason: "aborted" };
    const content = "The turn was aborted before this call was run.";
    const { openCalls } = this.#options.log.facts;
    // Calls that waited when the turn began keep waiting.
    const asked = openCalls.calls.filter(({ id }) => !openCalls.isWaiting(id));
    const results = asked.map(({ id, name }) => resultDraft(id, name, { content, isError: true }));
    const drafts = [...results, ...brokenReply(reply, content), ...calls.flatMap(callDrafts)];
    await this.#close(drafts, { state: "aborted" }, null, this.decision("aborted", reply).entry);
    return { outcome: "aborted", denial: null };
  }

  /** Returns the error to throw. */
  async unanswered({ message, calls, error }: CallResult): Promise<unknown> {
    this.#assertOurs();
    const reason = modelFailure(error);
    const drafts = [
      ...brokenReply(message, "The reply broke off before this call was run."),
      ...calls.flatMap(callDrafts),
    ];
    await this.#close(drafts, failedMark(reason), null);
    return reason;
  }

  /** Closes a turn after an error outside of the model call. */
  async failed(error: unknown): Promise<void> {
    const reason = ThroughlineError.isInstance(error) ? error : { code: "INTERNAL", message: causeText(error) };
    await this.#close([], failedMark(reason), null);
  }

  decision(outcome: BeforeCloseContext["outcome"], reply: AssistantMessage | null): ClosingDecision {
    const { settings, log, turn } = this.#options;
    return settings.beforeClose?.({ ref: log.ref, turnId: turn.turnId, outcome, reply, entry: log.entry }) ?? {};
  }

  /** Returns the changed fields of the entry after a call. */
  patch(result: CallResult | null, end: TurnMark["state"] | null = null): Readonly<Record<string, unknown>> {
    const { ledger, clock, log } = this.#options;
    return ledger.patch({
      nowMs: clock.nowMs(),
      model: log.target,
      usage: result?.usage ?? null,
      isSystemSent: this.isSystemSent,
      // A denied turn ran no call, so it does not change the state of the last run.
      isAborted: end === null || end === "denied" ? null : end === "aborted",
    });
  }

  async #close(
    drafts: readonly RecordDraft[],
    mark: Omit<TurnMark, "turnId">,
    result: CallResult | null,
    entry: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    const introduced = this.isIntroduced && mark.state === "done" ? { groupActivationNeedsSystemIntro: false } : {};
    const patch = { ...entry, ...introduced, ...this.#waitingCalls(mark, drafts), ...this.patch(result, mark.state) };
    await this.#options.turn.close(drafts, mark, patch);
  }

  /** Calls that waited when the turn began wait on, however the turn ends without a decision on them. */
  #waitingCalls(
    { state }: Pick<TurnMark, "state">,
    drafts: readonly RecordDraft[],
  ): { readonly waiting?: WaitingCalls | undefined } {
    const { log, clock, turn } = this.#options;
    const { openCalls } = log.facts;
    const isWaiting = state === "waiting";
    if (!isWaiting && log.entry["waiting"] === undefined) return {};
    const open = openCalls.calls.filter(({ id }) => openCalls.stateOf(id) === "undecided");
    const waiting = isWaiting ? open : open.filter(({ id }) => openCalls.isWaiting(id));
    if (!isWaiting && waiting.length === 0) return { waiting: undefined };
    const asked = new Map(drafts.map((draft) => readApproval(draft)).map((question) => [question?.callId, question]));
    const deadlinesMs = waiting
      .map(({ id }) => (asked.get(id) ?? openCalls.waiting(id))?.expiresAtMs ?? null)
      .filter((atMs) => atMs !== null);
    const { turnId, fence } = turn;
    return { waiting: waitingSign({ turnId, fence, sinceMs: clock.nowMs(), calls: waiting.length, deadlinesMs }) };
  }

  #assertOurs(): void {
    const { lostBecause } = this.#options.turn;
    if (lostBecause !== null) throw lostBecause;
  }
}

function failedMark({ code, message }: { readonly code: string; readonly message: string }): Omit<TurnMark, "turnId"> {
  return { state: "failed", error: { code, message: message.slice(0, 300).toWellFormed() } };
}

/** Stores a partial reply with a result for each of its calls, so that no reader finds a call without one. */
export function brokenReply(message: AssistantMessage | null, content: string): readonly RecordDraft[] {
  if (message === null) return [];
  const results = toolCallsOf(message).map(({ id, name }) => resultDraft(id, name, { content, isError: true }));
  return [messageDraft(message), ...results];
}

/**
 * Builds the result for the caller. Text and stop reason are those of the last reply, and a reply that `holdBack`
 * withholds has no text.
 */
export function finishedTurn(parts: Omit<Turn, "text" | "stopReason" | "output">, holdBack: HoldBack | null): Turn {
  const reply = lastReply(parts.messages);
  const text = textOfContent(reply?.content);
  const isHeldBack = holdBack?.(text, true) ?? false;
  return { ...parts, text: isHeldBack ? "" : text, stopReason: reply?.stopReason ?? null, output: undefined };
}

/** Builds the result of a turn from its records. */
export function replayedTurn(
  log: SessionLog,
  turnId: string,
  { state, denial, records, calls }: Omit<KeyedTurn, "state"> & { readonly state: Turn["outcome"] },
  holdBack: HoldBack | null,
): Turn {
  const messages = records.flatMap(({ record }) => (record.type === "message" ? [record["message"] as Message] : []));
  const parts = {
    turnId,
    ref: log.ref,
    messages,
    calls,
    ...usageOfCalls(calls),
    gauge: gaugeNow(log),
    replayed: true,
    joined: false,
  };
  return finishedTurn({ ...parts, outcome: state, denial }, holdBack);
}

function gaugeNow(log: SessionLog): Gauge {
  const { facts, entry } = log;
  const tokens = facts.measured?.occupancyTokens ?? 0;
  const source = facts.measured === null ? "heuristic" : "actual";
  return log.gauge({ tokens, lowTokens: tokens, highTokens: tokens, source }, entry.contextTokens ?? null);
}
