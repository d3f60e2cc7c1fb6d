import type { AppendOptions, AppendResult, AssistantMessage, ChatDelta, RecordDraft } from "@throughline/core";
import { type CompactionRequest, createGuardTurn } from "@throughline/guard/internal";
import { resolveGroupActivation } from "@throughline/policy/internal";
import type { Actual, AheadCounter, TokenCounter } from "@throughline/tokens/internal";
import { callModel, type CallResult, type CallContext } from "./call-model.ts";
import { callDrafts, type CallFacts } from "./call-record.ts";
import { brokenReply, type TurnClose, type TurnCloseOptions, type TurnEnd } from "./close.ts";
import { messageDraft, toolCallsOf } from "./message-parts.ts";
import { estimatePrompt, measuredSize, prefixOf, promptOf, type Prompt, type PromptPrefix } from "./prompt.ts";
import { type RequestedCalls, runTools, type RunToolsOptions } from "./run-tools.ts";
import type { PartialWriter } from "./partial-writer.ts";
import { sendDenial, type SendDenial } from "./send-denial.ts";
import type { SessionModel, StepContext } from "./session-options.ts";
import { withThinkingLevel } from "./thinking-level.ts";
import { readWindowRecords } from "./window-records.ts";
import { stepChoice } from "./tool-choice.ts";
import { wireTools } from "./wire-tools.ts";

type ToolRun = RequestedCalls & Pick<RunToolsOptions, "approve" | "recorded">;

export interface TurnRunOptions extends TurnCloseOptions {
  readonly counter: AheadCounter;
  /** The list grows while the turn runs. */
  readonly calls: CallFacts[];
  readonly summaryId: () => string | null;
  /** Is false for group messages that are not addressed to the agent. */
  readonly isMentioned: boolean;
  /** Returns messages that arrived since the last call and belong into the next one. */
  readonly steeredDrafts: () => readonly RecordDraft[];
  /** Decides on the calls that an earlier turn left open; null when the turn does not resume one. */
  readonly answers: RunToolsOptions["approve"];
  readonly onDelta: ((delta: ChatDelta) => void) | null;
  /** Keeps the text of open replies; null where nothing keeps it. */
  readonly partial: PartialWriter | null;
}

/** Runs an open turn: asks the model and runs tools until the model makes no more calls, then closes the turn. */
export class TurnRun {
  readonly #options: TurnRunOptions;
  readonly #close: TurnClose;
  readonly #guardTurn = createGuardTurn();
  #step = 0;
  /** The model is fixed for the whole turn, because a tool loop must not change the thinking level. */
  #model: SessionModel | null = null;

  constructor(options: TurnRunOptions, close: TurnClose) {
    this.#options = options;
    this.#close = close;
  }

  /** @throws the error that ended the turn; the log states it unless the turn was lost or the store failed */
  async run(): Promise<TurnEnd> {
    const { log, settings, turn } = this.#options;
    const { signal } = turn;
    for (;;) {
      if (signal.aborted) return this.#close.aborted(null, []);
      const denial = await this.#denial();
      if (denial !== null) return this.#deny(denial);
      const waiting = this.#step === 0 ? await this.#runOpenCalls() : null;
      if (waiting !== null) return waiting;
      const steered = this.#step === 0 ? [] : this.#options.steeredDrafts();
      if (steered.length > 0) await this.#append(steered, {});
      this.#step += 1;
      const { result, ask } = await this.#ask();
      const message = withOwnId(result.message, this.#options.log.facts.replyId);
      if (signal.aborted) return this.#close.aborted(message, result.calls);
      if (result.error !== null) throw await this.#close.unanswered(result);
      if (message === null)
        throw await this.#close.unanswered({ ...result, error: new TypeError("The model gave no reply.") });
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
        const correction = (await settings.output?.takeReply(message, this.#step < settings.maxSteps)) ?? null;
        if (correction !== null) {
          await this.#appendReply([...drafts, correction], result);
          continue;
        }
        const { askAgain = [], entry } = this.#close.decision("done", message);
        if (askAgain.length > 0 && this.#step < settings.maxSteps) {
          await this.#appendReply([...drafts, ...askAgain], result);
          continue;
        }
        return this.#close.done(drafts, result, entry);
      }
      await this.#appendReply(drafts, result);
      const { approveTool: approve } = settings;
      const end = await this.#runTools({
        calls,
        cutOffId: log.facts.openCalls.cutOffId,
        approve,
        recorded: () => null,
      });
      if (end !== null) return end;
      await settings.output?.takeCalls(calls);
      if (settings.output?.isSettled === true) return this.#close.answered(message);
      if (this.#step < settings.maxSteps || signal.aborted) continue;
      return this.#close.atStepLimit(message);
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
    return this.#close.denied(denial);
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
      toolChoice: stepChoice({ ...settings, step: this.#step }),
      output: settings.output?.recorded ?? null,
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
      partial: this.#options.partial,
      emit,
      onEstimate: (estimate, windowTokens) => {
        const percent = ledger.estimated(estimate, windowTokens, settings.warnAtPercents);
        if (percent !== null) emit?.({ name: "threshold.crossed", percent, gauge: ledger.prompt() });
      },
    };
    const result = await callModel(prompt, context);
    ledger.learned(result.limits);
    this.#options.calls.push(...result.calls);
    if (result.calls.length > 0 && (prefix.system ?? "") !== "") this.#close.isSystemSent = true;
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
    this.#close.isIntroduced ||= introduction !== null;
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

  /** Carries out the decisions on the calls that an earlier turn left open. Returns null when no call waits. */
  async #runOpenCalls(): Promise<TurnEnd | null> {
    const { log, turn, answers } = this.#options;
    const { openCalls } = log.facts;
    if (openCalls.size === 0 || answers === null) return null;
    const { calls, cutOffId } = openCalls;
    const recorded = (callId: string): ReturnType<RunToolsOptions["recorded"]> =>
      log.facts.openCalls.decisionFor(turn.turnId, callId);
    return this.#runTools({ calls, cutOffId, approve: answers, recorded });
  }

  /** Returns the end of the turn when calls wait for a decision. */
  async #runTools({ approve, recorded, ...requested }: ToolRun): Promise<TurnEnd | null> {
    const { log, settings, emit, turn, clock } = this.#options;
    const { signal, turnId } = turn;
    const questions = await runTools(requested, {
      ref: log.ref,
      turnId,
      tools: settings.tools.byName,
      isParallel: settings.isParallel,
      approve,
      recorded,
      asksInParallel: settings.asksInParallel,
      signal,
      emit,
      clock,
      recordBytes: log.store.capabilities.limits.recordBytes,
      append: (drafts) => this.#append(drafts, {}),
    });
    if (questions === null) return null;
    return signal.aborted ? this.#close.aborted(null, []) : this.#close.waiting(questions);
  }

  /** Appends a reply after which the turn continues. */
  async #appendReply(drafts: readonly RecordDraft[], result: CallResult): Promise<void> {
    await this.#append(drafts, { entry: this.#close.patch(result) });
    this.#options.partial?.end();
  }

  #append(drafts: readonly RecordDraft[], options: AppendOptions): Promise<AppendResult> {
    return this.#options.turn.append(drafts, options);
  }
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
