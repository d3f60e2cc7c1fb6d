import {
  ThroughlineError,
  type AppendOptions,
  type AppendResult,
  type AssistantMessage,
  type ChatDelta,
  type Clock,
  type Message,
  type RecordDraft,
  type ToolCallBlock,
} from "@throughline/core";
import { type CompactionRequest, createGuardTurn, modelFailure } from "@throughline/guard/internal";
import { resolveGroupActivation } from "@throughline/policy/internal";
import type { Actual, AheadCounter, TokenCounter } from "@throughline/tokens/internal";
import { callModel, type CallResult, type CallContext } from "./call-model.ts";
import { callDrafts, type CallFacts } from "./call-record.ts";
import { errorText } from "./error-text.ts";
import { estimatePrompt, measuredSize, prefixOf, promptOf, type Prompt, type PromptPrefix } from "./prompt.ts";
import type { HeldTurn } from "./held-turn.ts";
import { resultDraft, runTools } from "./run-tools.ts";
import { sendDenial, type SendDenial } from "./send-denial.ts";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { ClosingDecision, SessionModel, StepContext, BeforeCloseContext } from "./session-options.ts";
import { withThinkingLevel } from "./thinking-level.ts";
import type { TurnLedger } from "./turn-ledger.ts";
import type { TurnMark } from "./turn-mark.ts";
import type { TurnSettings } from "./turn-settings.ts";
import { wireTools } from "./wire-tools.ts";
import { readWindowRecords } from "./window-records.ts";

export interface TurnRunOptions {
  readonly log: SessionLog;
  readonly ledger: TurnLedger;
  readonly settings: TurnSettings;
  readonly counter: AheadCounter;
  readonly clock: Clock;
  readonly turn: HeldTurn;
  readonly summaryId: () => string | null;
  /** Is false for group messages that are not addressed to the agent. */
  readonly isMentioned: boolean;
  /** Returns messages that arrived since the last call and belong into the next one. */
  readonly steeredDrafts: () => readonly RecordDraft[];
  readonly onDelta: ((delta: ChatDelta) => void) | null;
  readonly emit: Emit | null;
}

export interface TurnEnd {
  readonly outcome: "done" | "aborted" | "step-limit" | "denied";
  readonly reply: AssistantMessage | null;
  readonly denial: SendDenial | null;
  readonly calls: readonly CallFacts[];
}

/** Runs an open turn: asks the model and runs tools until the model makes no more calls, then closes the turn. */
export class TurnRun {
  readonly #options: TurnRunOptions;
  readonly #calls: CallFacts[] = [];
  readonly #guardTurn = createGuardTurn();
  #step = 0;
  #isSystemSent = false;
  #isIntroduced = false;
  /** The model is fixed for the whole turn, because a tool loop must not change the thinking level. */
  #model: SessionModel | null = null;

  constructor(options: TurnRunOptions) {
    this.#options = options;
  }

  /** @throws the error that ended the turn; the log states it unless the turn was lost or the store failed */
  async run(): Promise<TurnEnd> {
    const { settings, turn } = this.#options;
    const { signal } = turn;
    for (;;) {
      if (signal.aborted) return this.#abort(null, []);
      const denial = await this.#denial();
      if (denial !== null) return this.#deny(denial);
      const steered = this.#step === 0 ? [] : this.#options.steeredDrafts();
      if (steered.length > 0) await this.#append(steered, {});
      this.#step += 1;
      const { result, ask } = await this.#ask();
      const message = withOwnId(result.message, this.#options.log.facts.replyId);
      if (signal.aborted) return this.#abort(message, result.calls);
      if (result.error !== null) throw await this.#fail(result);
      if (message === null) throw await this.#fail({ ...result, error: new TypeError("The model gave no reply.") });
      if (result.usage !== null) this.#options.ledger.answered({ ...ask, ...result, usage: result.usage });
      const isWhole = message.stopReason !== "error" && message.stopReason !== "aborted";
      const calls = isWhole ? toolCallsOf(message) : [];
      // The mark proves later that a call without a decision in the log has not run, even after a crash.
      const isAsked = calls.length > 0 && settings.approveTool !== null;
      const asked = isAsked ? ({ asksApproval: true } as const) : {};
      const drafts = [
        ...(isWhole ? [messageDraft(message)] : endedReply(message)),
        ...result.calls.flatMap((call) => callDrafts({ ...call, ...asked })),
      ];
      if (calls.length === 0) {
        const { askAgain = [], entry } = this.#closing("done", message);
        if (askAgain.length > 0 && this.#step < settings.maxSteps) {
          await this.#append([...drafts, ...askAgain], { entry: this.#patch(result) });
          continue;
        }
        await this.#close(drafts, { state: "done" }, result, entry);
        return { outcome: "done", reply: message, calls: this.#calls, denial: null };
      }
      await this.#append(drafts, { entry: this.#patch(result) });
      await this.#runTools(message, calls);
      if (this.#step < settings.maxSteps || signal.aborted) continue;
      await this.#close([], { state: "step-limit" }, null, this.#closing("step-limit", message).entry);
      return { outcome: "step-limit", reply: message, calls: this.#calls, denial: null };
    }
  }

  /**
   * The entry is read again before each call. If a person denies a session during a turn, no further call may be sent.
   */
  async #denial(): Promise<SendDenial | null> {
    const { log, settings, isMentioned } = this.#options;
    await log.refreshEntry();
    return sendDenial(settings.sendPolicy, log, isMentioned);
  }

  async #deny(denial: SendDenial): Promise<TurnEnd> {
    await this.#estimate();
    this.#options.emit?.({ name: "send.denied", ...denial });
    await this.#close([], { state: "denied", denial }, null);
    return { outcome: "denied", reply: null, calls: this.#calls, denial };
  }

  async #ask(): Promise<{
    readonly result: CallResult;
    readonly ask: { readonly counter: TokenCounter; readonly actual: Actual | null; readonly prefix: PromptPrefix };
  }> {
    const { log, settings, ledger, counter, onDelta, emit, turn } = this.#options;
    const { signal, turnId } = turn;
    await this.#runSteps();
    const { prompt, prefix, actual } = await this.#prompt();
    const context: CallContext = {
      turnId,
      step: this.#step,
      model: this.#callModel(),
      prefix,
      wireTools: wireTools(settings.tools.definitions, settings.model.chat.api),
      counter,
      calibration: ledger.learning.calibration,
      limits: ledger.learning.limits,
      windowTokens: ledger.windowTokens,
      actual,
      keptChanges: log.facts.keptChanges,
      guardTurn: this.#guardTurn,
      fromSeq: log.fromSeq,
      summaryId: this.#options.summaryId,
      compact: settings.compact === null ? null : (request) => this.#compact(request, prefix),
      results: settings.results,
      recordBytes: log.store.capabilities.limits.recordBytes,
      signal,
      clock: this.#options.clock,
      onDelta,
      holdBack: settings.holdBack,
      emit,
      onEstimate: (estimate, windowTokens) => {
        const percent = ledger.estimated(estimate, windowTokens, settings.warnAtPercents);
        if (percent !== null) emit?.({ name: "threshold.crossed", percent, gauge: ledger.prompt() });
      },
    };
    const result = await callModel(prompt, context);
    ledger.learned(result.limits);
    this.#calls.push(...result.calls);
    if (result.calls.length > 0 && (prefix.system ?? "") !== "") this.#isSystemSent = true;
    return { result, ask: { counter, actual, prefix } };
  }

  #callModel(): SessionModel {
    const { settings, log, emit } = this.#options;
    this.#model ??= withThinkingLevel(settings.model, log, emit);
    return this.#model;
  }

  /** Builds the next request. A function for the system prompt receives the size of the whole request. */
  async #prompt(): Promise<{
    readonly prompt: Prompt;
    readonly prefix: PromptPrefix;
    readonly actual: Actual | null;
  }> {
    const { log, settings, counter, turn, ledger } = this.#options;
    const { system, tools } = settings;
    if (typeof system === "function") await this.#estimate();
    const text =
      typeof system === "function" ? system({ ref: log.ref, turnId: turn.turnId, gauge: ledger.prompt() }) : system;
    const introduced = this.#withIntroduction(text);
    await log.history.prepare();
    const prefix = prefixOf(introduced, tools.definitions);
    const prompt = promptOf(log, introduced);
    return { prompt, prefix, actual: measuredSize(log, prompt.messages, prefix, counter) };
  }

  /** The entry asks for the introduction until an answer came. All calls of a turn therefore begin alike. */
  #withIntroduction(system: string | null): string | null {
    const { log } = this.#options;
    const { introduction } = resolveGroupActivation({ key: log.ref.key, entry: log.entry });
    this.#isIntroduced ||= introduction !== null;
    if (introduction === null) return system;
    return system === null || system === "" ? introduction : `${system}\n\n${introduction}`;
  }

  /** A function for the system prompt runs once only to count its prompt. */
  async #estimate(): Promise<void> {
    const { log, settings, ledger } = this.#options;
    const { system } = settings;
    if (typeof system !== "function") return this.#estimateWith(system);
    await this.#estimateWith(null);
    await this.#estimateWith(system({ ref: log.ref, turnId: null, gauge: ledger.prompt() }));
  }

  async #estimateWith(system: string | null): Promise<void> {
    const { log, settings, counter, ledger } = this.#options;
    await log.history.prepare();
    const prefix = prefixOf(system, settings.tools.definitions);
    const prompt = promptOf(log, system, log.facts.keptChanges);
    const actual = measuredSize(log, prompt.messages, prefix, counter);
    const { calibration } = ledger.learning;
    const estimate = await estimatePrompt(prompt, prefix.tools, { counter, calibration, actual });
    ledger.estimated(estimate, ledger.windowTokens, []);
  }

  async #runSteps(): Promise<void> {
    const { settings, emit, turn } = this.#options;
    for (const step of settings.steps) {
      if (step.when !== "before-call" || turn.signal.aborted) continue;
      await this.#estimate();
      emit?.({ name: "step.started", step: step.name });
      await step.run(this.#stepContext());
      emit?.({ name: "step.finished", step: step.name });
    }
  }

  #stepContext(): StepContext {
    const { log, settings, ledger, turn, counter } = this.#options;
    const { signal, turnId, fence } = turn;
    return {
      ref: log.ref,
      sessionId: log.sessionId,
      turnId,
      entry: log.entry,
      model: settings.model,
      gauge: ledger.prompt(),
      signal,
      turn: { action: "within", fence },
      counter,
      calibration: ledger.learning.calibration,
      refresh: () => log.catchUp(),
      records: () => readWindowRecords(log),
      append: async (drafts, options = {}) => {
        await this.#append(drafts, options);
      },
    };
  }

  async #compact(request: CompactionRequest, prefix: PromptPrefix): Promise<Prompt | null> {
    const { settings, log } = this.#options;
    const { reason, targetTokens, observedTokens } = request;
    const { tokens, lowTokens, highTokens, source } = this.#options.ledger.prompt();
    const estimate = { tokens, lowTokens, highTokens, source };
    const context = { ...this.#stepContext(), reason, targetTokens, observedTokens, estimate };
    const isCompacted = (await settings.compact?.(context)) ?? false;
    if (!isCompacted) return null;
    // The compaction may have appended to the store directly.
    await log.catchUp();
    await log.history.prepare();
    return promptOf(log, prefix.system);
  }

  async #runTools(message: AssistantMessage, calls: readonly ToolCallBlock[]): Promise<void> {
    const { log, settings, emit, turn } = this.#options;
    const { signal, turnId } = turn;
    const last = Array.isArray(message.content) ? message.content.at(-1) : null;
    const isCutOff = message.stopReason === "length" && last === calls.at(-1);
    await runTools(
      { calls, isCutOff },
      {
        ref: log.ref,
        turnId,
        tools: settings.tools.byName,
        isParallel: settings.isParallel,
        approve: settings.approveTool,
        asksInParallel: settings.asksInParallel,
        signal,
        emit,
        clock: this.#options.clock,
        recordBytes: log.store.capabilities.limits.recordBytes,
        append: (drafts) => this.#append(drafts, {}),
      },
    );
  }

  /** Stores what was received, answers its calls, and closes the turn. */
  async #abort(message: AssistantMessage | null, calls: readonly CallFacts[]): Promise<TurnEnd> {
    this.#assertOurs();
    const reply = message === null ? null : { ...message, stopReason: "aborted" };
    const drafts = [
      ...brokenReply(reply, "The turn was aborted before this call was run."),
      ...calls.flatMap(callDrafts),
    ];
    await this.#close(drafts, { state: "aborted" }, null, this.#closing("aborted", reply).entry);
    return { outcome: "aborted", reply, calls: this.#calls, denial: null };
  }

  async #fail({ message, calls, error }: CallResult): Promise<unknown> {
    this.#assertOurs();
    const reason = modelFailure(error);
    const drafts = [
      ...brokenReply(message, "The reply broke off before this call was run."),
      ...calls.flatMap(callDrafts),
    ];
    const problem = { code: reason.code, message: reason.message.slice(0, 300).toWellFormed() };
    await this.#close(drafts, { state: "failed", error: problem }, null);
    return reason;
  }

  /** Closes a turn after an error outside of the model call. */
  async closeFailed(error: unknown): Promise<void> {
    const { code, message } = ThroughlineError.isInstance(error)
      ? error
      : { code: "INTERNAL", message: errorText(error) };
    await this.#close([], { state: "failed", error: { code, message: message.slice(0, 300).toWellFormed() } }, null);
  }

  async #close(
    drafts: readonly RecordDraft[],
    mark: Omit<TurnMark, "turnId">,
    result: CallResult | null,
    entry: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    const introduced = this.#isIntroduced && mark.state === "done" ? { groupActivationNeedsSystemIntro: false } : {};
    await this.#options.turn.close(drafts, mark, { ...entry, ...introduced, ...this.#patch(result, mark.state) });
  }

  #closing(outcome: BeforeCloseContext["outcome"], reply: AssistantMessage | null): ClosingDecision {
    const { settings, log, turn } = this.#options;
    return settings.beforeClose?.({ ref: log.ref, turnId: turn.turnId, outcome, reply, entry: log.entry }) ?? {};
  }

  #patch(result: CallResult | null, end: TurnMark["state"] | null = null): Readonly<Record<string, unknown>> {
    const { ledger, clock, log } = this.#options;
    return ledger.patch({
      nowMs: clock.nowMs(),
      model: log.target,
      usage: result?.usage ?? null,
      isSystemSent: this.#isSystemSent,
      // A denied turn ran no call, so it does not change the state of the last run.
      isAborted: end === null || end === "denied" ? null : end === "aborted",
    });
  }

  #append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<AppendResult> {
    return this.#options.turn.append(drafts, options);
  }

  #assertOurs(): void {
    const { lostBecause } = this.#options.turn;
    if (lostBecause !== null) throw lostBecause;
  }
}

export function messageDraft(message: Message): RecordDraft {
  return { type: "message", message };
}

function toolCallsOf({ content }: AssistantMessage): readonly ToolCallBlock[] {
  return Array.isArray(content) ? content.filter((block): block is ToolCallBlock => block.type === "toolCall") : [];
}

/**
 * Removes the id of the previous reply from a new one, because some local servers give all replies the same id. Replies
 * with one id count as parts of one. The request would then place all of them before the first result.
 */
function withOwnId(message: AssistantMessage | null, before: string | null): AssistantMessage | null {
  if (message === null || before === null) return message;
  const { responseId, ...own } = message as AssistantMessage & { readonly responseId?: unknown };
  return responseId === before ? own : message;
}

/** A reply that its provider ended, for example by a filter, is in no later request. Its calls therefore do not run. */
function endedReply(message: AssistantMessage): readonly RecordDraft[] {
  return brokenReply(message, "The provider ended the reply; this call was not run.");
}

/** Stores a partial reply with a result for each of its calls, so that no reader finds a call without one. */
function brokenReply(message: AssistantMessage | null, content: string): readonly RecordDraft[] {
  if (message === null) return [];
  const results = toolCallsOf(message).map(({ id, name }) => resultDraft(id, name, { content, isError: true }));
  return [messageDraft(message), ...results];
}
