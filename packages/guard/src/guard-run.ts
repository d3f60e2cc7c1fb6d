import { ThroughlineError } from "@throughline/core";
import { tellListener } from "@throughline/core/internal";
import { contextOverflowError } from "./context-overflow-error.ts";
import { calibratedFactor, type Calibration } from "@throughline/tokens/internal";
import type { ContextEstimate } from "@throughline/tokens";
import { applyRemedy, replaceHistory, type Remedied } from "./apply-remedy.ts";
import { classifyOverflow } from "./classify-overflow.ts";
import { compactOnce } from "./compact-once.ts";
import { applyChanges } from "./apply-changes.ts";
import type { GuardChange, RecordIdsOfMessages } from "./guard-change.ts";
import type { GuardAttempt, GuardedRequest, GuardEvent, GuardOptions, GuardOutcome } from "./guard-options.ts";
import { createGuardTurn, type GuardTurn } from "./guard-options.ts";
import { kindToCure, ownCures, type GuardStep, type Remedy } from "./guard-steps.ts";
import { learnLimits, limitsOf, nothingLearned, type LearnedLimits } from "./learned-limits.ts";
import { countedBy, statedWindow, mayBeOverflow, probedOverflow } from "./overflow-probe.ts";
import { believable, overflowInReply, silentOverflow } from "./overflow-in-reply.ts";
import { silentTruncation } from "./ollama.ts";
import type { OverflowClassification, OverflowKind } from "./overflow.ts";
import { readReply } from "./read-reply.ts";
import { resultWindowTokens } from "./result-limits.ts";
import { RemedyLadder } from "./remedy-ladder.ts";
import {
  createSizeGauge,
  excessOf,
  guardedRequest,
  outputReserve,
  safePromptTokens,
  smallerWindow,
  type SizeGauge,
} from "./request-size.ts";
import { unbound } from "./unbound-request.ts";

const notKept = Symbol("nothing was kept");

/** Holds one guarded call in progress and runs the work of each state. `guardSteps` sets the order of the states. */
export class GuardRun<Reply> {
  estimate: ContextEstimate;
  error: unknown = null;
  readonly #options: GuardOptions<Reply>;
  readonly #gauge: SizeGauge;
  readonly #signal: AbortSignal | null;
  /** Is true when the estimate rests on measurements of this model by the provider. */
  readonly #isMeasured: boolean;
  /** Holds the estimate divided by its upper bound, which lowers the target until a refusal states the size. */
  readonly #sureShare: number;
  readonly #leastOutput: number;
  readonly #wanted: GuardedRequest;
  #request: GuardedRequest;
  #recordIds: RecordIdsOfMessages;
  #limits: LearnedLimits;
  #window: number | null;
  #kind: OverflowKind = "input";
  #overflow: OverflowClassification | null = null;
  #overflowCause: unknown = null;
  /** Is true from an overflow until the request is made smaller. */
  #isNews = false;
  #counted: number | null = null;
  #stated: number | null = null;
  readonly #ladder: RemedyLadder;
  readonly #turn: GuardTurn;
  #hasAskedWindow = false;
  #isRefusedUnsized = false;
  #refusalsWithoutSizes = 0;
  readonly #effective: Remedy[] = [];
  readonly #changes: GuardChange[] = [];
  readonly #attempts: GuardAttempt[] = [];
  #calls = 0;
  #reply: Reply | null = null;
  #partial: unknown = notKept;
  /** Only one unreadable refusal is probed. `#isProbe` is true until its remedy is chosen. */
  #hasProbed = false;
  #isProbe = false;

  constructor(options: GuardOptions<Reply>, calibration: Calibration) {
    const {
      request,
      model,
      counter,
      actual = null,
      keptChanges = [],
      recordIds = [],
      limits = nothingLearned,
    } = options;
    const messages = applyChanges(request.messages, keptChanges, recordIds);
    this.#options = options;
    this.#turn = options.turn ?? createGuardTurn();
    this.#ladder = new RemedyLadder(options.maxRetries ?? 2);
    this.#signal = options.signal ?? null;
    const { observations, factor, high } = calibratedFactor(calibration, counter);
    this.#isMeasured = actual !== null || observations > 0;
    this.#sureShare = factor / high;
    this.#leastOutput = options.leastOutputTokens ?? 1024;
    this.#recordIds = recordIds;
    this.#limits = limits;
    this.#window = smallerWindow(options.windowTokens ?? null, limitsOf(limits, model).windowTokens ?? null);
    // The provider measured the changed messages, so the gauge compares with them.
    this.#gauge = createSizeGauge(counter, calibration, actual, messages);
    this.#wanted = guardedRequest(request.messages === messages ? request : { ...request, messages });
    this.#request = this.#wanted;
    this.estimate = this.#gauge.estimate(this.#request);
  }

  async check(): Promise<GuardStep> {
    if (this.#isAborted()) return "aborted";
    const size = await this.#measure();
    if (this.#isAborted()) return "aborted";
    const kind = excessOf(size, this.#window, this.#request.maxOutputTokens, this.#leastOutput);
    if (kind === null) return "fits";
    this.#kind = kind;
    if (this.#attempts.length === 0) {
      this.#attempts.push(this.#attempt(null, "over"));
      this.#emitAttempt(null);
    }
    return "over";
  }

  async call(): Promise<GuardStep> {
    const attempt = this.#calls++;
    this.#emitAttempt(attempt);
    this.#partial = notKept;
    try {
      const keep = (partial: unknown): void => void (this.#partial = partial);
      const reply = await this.#options.call(this.#request, { attempt, signal: this.#signal, keep });
      this.#reply = reply;
      return await this.#judgeReply(reply, attempt);
    } catch (error) {
      return await this.#judgeError(error, attempt);
    }
  }

  async shrink(): Promise<GuardStep> {
    if (this.#isProbe) return this.#shrinkForProbe();
    await this.#askWindow();
    let isShrunk = false;
    for (;;) {
      const remedy = this.#ladder.next(this.#kind, this.#calls);
      if (remedy === null) return isShrunk ? "shrunk" : this.#deadEnd();
      const hasHelped = await this.#tryRemedy(remedy);
      if (this.#isAborted()) return "aborted";
      isShrunk ||= hasHelped;
      // Without a window no estimate can show that the request fits. The last call therefore gets every remedy.
      if (isShrunk && !(this.#window === null && this.#ladder.isLastCall(this.#calls))) return "shrunk";
    }
  }

  /** No provider stated that the request is too large, so a probe may only shorten oversized results. */
  async #shrinkForProbe(): Promise<GuardStep> {
    this.#isProbe = false;
    this.#isNews = false;
    this.error = this.#overflowCause;
    if (this.#ladder.isTried("truncate")) return "failed";
    return (await this.#tryRemedy("truncate")) ? "shrunk" : "failed";
  }

  outcome(state: "done" | "kept"): GuardOutcome<Reply> {
    const isKept = state === "kept";
    return {
      outcome: isKept ? "partial" : "answered",
      reply: this.#reply,
      partial: this.#partial === notKept ? null : this.#partial,
      overflow: isKept ? this.#overflow : null,
      request: this.#request,
      recordIds: this.#recordIds,
      changes: this.#changes,
      attempts: this.#attempts,
      limits: this.#limits,
      estimate: this.estimate,
    };
  }

  overflowError(): ThroughlineError {
    const situation = {
      kind: this.#overflow?.kind ?? this.#kind,
      estimatedTokens: this.estimate.tokens,
      windowTokens: this.#overflow?.limitTokens ?? this.#window,
      attempts: this.#attempts,
      limits: this.#limits,
    };
    return contextOverflowError(situation, this.#calls, this.#overflowCause);
  }

  /** Asks for the provider's own count when the estimate is too close to the limit to decide. */
  async #measure(): Promise<number> {
    const { countTokens } = this.#options;
    this.#counted = null;
    const room = (this.#window ?? 0) - outputReserve(this.#leastOutput, this.#request.maxOutputTokens);
    const isOpen = this.#promptTokens >= room * 0.85 && this.#promptTokens <= room;
    if (countTokens && isOpen) this.#counted = await countedBy(this.#options, this.#request);
    return this.#promptTokens;
  }

  /**
   * Remedies are chosen and judged by this size. The upper bound counts only after a refusal without a size: a needless
   * call costs less than messages that are left out without need.
   */
  get #promptTokens(): number {
    const { tokens, highTokens } = this.estimate;
    return this.#counted ?? (this.#isRefusedUnsized ? highTokens : tokens);
  }

  async #judgeReply(reply: Reply, attempt: number): Promise<GuardStep> {
    const facts = (this.#options.readReply ?? readReply)(reply);
    const found = overflowInReply(facts, this.#window, this.#options.model.provider);
    if (found !== null) return this.#meetOverflow(found, facts.error ?? reply, attempt, !facts.isEmpty);
    if (facts.promptTokens !== null && (await this.#wasTruncated(facts.promptTokens))) {
      return this.#meetOverflow(silentOverflow(this.#window), reply, attempt);
    }
    this.#attempts.push(this.#attempt(attempt, "answered"));
    return "answered";
  }

  async #judgeError(error: unknown, attempt: number): Promise<GuardStep> {
    const overflow = await this.#probed(error, classifyOverflow(error, this.#options.model));
    if (!this.#isAborted() && overflow.overflow) return this.#meetOverflow(overflow, error, attempt);
    if (!this.#isAborted()) this.#learn(overflow);
    this.#attempts.push(this.#attempt(attempt, "failed"));
    this.error = error;
    return this.#isAborted() ? "aborted" : "failed";
  }

  /** Examines an unreadable refusal once: by the provider's count, or without one by a call with shorter results. */
  async #probed(error: unknown, found: OverflowClassification): Promise<OverflowClassification> {
    if (this.#hasProbed || this.#isAborted() || !mayBeOverflow(error, found, this.estimate, this.#window)) return found;
    this.#hasProbed = true;
    if (!this.#options.countTokens) {
      this.#isProbe = this.#partial === notKept;
      return this.#isProbe ? probedOverflow(found, this.#window, null) : found;
    }
    this.#counted ??= await countedBy(this.#options, this.#request);
    const reserve = outputReserve(this.#window ?? 0, this.#request.maxOutputTokens);
    const isOver = this.#counted !== null && this.#counted + reserve > (this.#window ?? 0);
    return isOver ? probedOverflow(found, this.#window, this.#counted) : found;
  }

  #meetOverflow(overflow: OverflowClassification, cause: unknown, attempt: number, hasAnswer = false): GuardStep {
    const isKept = hasAnswer || this.#partial !== notKept;
    this.#overflow = overflow;
    this.#overflowCause = cause;
    const stated = believable(overflow, this.#window);
    this.#stated = stated;
    this.#isRefusedUnsized = stated === null;
    this.#isNews = true;
    this.#ladder.refused(stated !== null || overflow.limitTokens !== null);
    this.#kind = kindToCure(overflow);
    this.#attempts.push(this.#attempt(attempt, isKept ? "broke-off" : "overflowed"));
    this.#tell({ name: "guard.overflow", attempt, overflow });
    this.#learn(overflow);
    if (overflow.kind !== "ceiling" && overflow.limitTokens !== null)
      this.#window = smallerWindow(this.#window, overflow.limitTokens);
    if (stated !== null && overflow.kind !== "ceiling") this.#correctBy(stated);
    if (isKept) return "broke-off";
    this.#reply = null;
    return "overflowed";
  }

  #correctBy(observedTokens: number): void {
    this.#gauge.correct(this.estimate, observedTokens);
    this.estimate = this.#gauge.estimate(this.#request);
  }

  /** After an overflow without sizes the server may state its window. If not, the prompt is assumed to exceed ours. */
  async #askWindow(): Promise<void> {
    const isNews = this.#isNews;
    this.#isNews = false;
    if (!isNews || this.#overflow?.limitTokens !== null || this.#kind !== "input") return;
    if (!this.#hasAskedWindow) {
      this.#hasAskedWindow = true;
      this.#window = smallerWindow(this.#window, await statedWindow(this.#options));
    }
    if (this.#stated !== null || this.#window === null) return;
    // Each repeated refusal of a fitted request shows that the estimate is further off.
    const assumed = this.#window * (1 + this.#refusalsWithoutSizes++ / 2) + 1;
    this.#gauge.assume(this.estimate, assumed);
    this.estimate = this.#gauge.estimate(this.#request);
  }

  #learn(overflow: OverflowClassification): void {
    const learned = learnLimits(this.#limits, this.#options.model, overflow);
    if (learned === this.#limits) return;
    this.#limits = learned;
    this.#tell({ name: "guard.learned", limits: learned });
  }

  async #wasTruncated(promptTokens: number): Promise<boolean> {
    if (this.#options.model.provider !== "ollama") return false;
    const found = silentTruncation(promptTokens, this.estimate, this.#window);
    if (found !== "suspected") return found === "certain";
    const window = await statedWindow(this.#options);
    if (window !== null && silentTruncation(promptTokens, this.estimate, window) === "certain") {
      this.#window = window;
      return true;
    }
    // A first estimate may be wrong by this much, so only a measured one raises a suspicion.
    if (this.#isMeasured) this.#tell({ name: "guard.truncation-suspected", promptTokens, estimate: this.estimate });
    return false;
  }

  #context(): Parameters<typeof applyRemedy>[1] {
    const refusedTokens = this.#overflow === null ? null : this.estimate.tokens;
    return {
      request: this.#request,
      recordIds: this.#recordIds,
      kind: this.#kind,
      overflow: this.#overflow,
      estimatedTokens: this.#promptTokens,
      statedTokens: this.#stated,
      targetTokens: this.#target(),
      windowTokens: this.#window,
      resultWindowTokens: resultWindowTokens(this.#window, this.#gauge.correction, refusedTokens),
      leastOutputTokens: this.#leastOutput,
      estimate: (messages) => this.#gauge.estimate({ ...this.#request, messages }).tokens,
      resultLimits: this.#options.resultLimits ?? null,
    };
  }

  #target(): number | null {
    const sure = this.#gauge.correction === 1 ? this.#sureShare : 1;
    return this.#window === null ? null : safePromptTokens(this.#window, this.#request.maxOutputTokens, sure);
  }

  async #compact(): Promise<Remedied | null> {
    const request = this.#request;
    const compacted = await compactOnce(this.#options.compact ?? null, this.#turn, {
      ...request,
      reason: this.#kind,
      targetTokens: this.#target(),
      observedTokens: this.#counted ?? this.#overflow?.inputTokens ?? null,
      estimate: (messages) => this.#gauge.estimate({ messages, system: null }).tokens,
      signal: this.#signal,
    });
    if (compacted === null || !this.#gauge.isSmaller(request, { ...request, messages: compacted.messages }))
      return null;
    this.#recordIds = compacted.recordIds ?? [];
    return replaceHistory({ request, kind: this.#kind }, compacted.messages);
  }

  /** Returns false, and changes nothing, when the new request is not smaller. */
  #take(remedy: Remedy, remedied: Remedied): boolean {
    const { request: next, changes } = unbound(this.#request, remedied, this.#kind, this.#options.model);
    const estimate = this.#gauge.estimate(next);
    if (!ownCures.has(remedy) && !this.#gauge.isSmaller(this.#request, next)) return false;
    // With fewer messages there may be room for the wanted output budget again.
    const { maxOutputTokens } = this.#wanted;
    this.#request = remedy === "output-budget" ? next : { ...next, maxOutputTokens };
    this.#stated = null;
    this.#counted = null;
    this.estimate = estimate;
    this.#effective.push(remedy);
    this.#changes.push(...changes);
    this.#tell({ name: "guard.shrunk", remedy, changes, tokens: estimate.tokens });
    return true;
  }

  async #tryRemedy(remedy: Remedy): Promise<boolean> {
    let cause: unknown = null;
    let hasWorked = false;
    try {
      const done = remedy === "compact" ? await this.#compact() : applyRemedy(remedy, this.#context());
      hasWorked = done !== null && this.#take(remedy, done);
    } catch (error) {
      // A failed compaction is one remedy less. In the end the overflow is thrown, not this error.
      cause = error;
    }
    this.#ladder.tried(remedy, hasWorked);
    // `drop` shifts the indexes of the messages, so the record ids no longer match.
    if (hasWorked && remedy === "drop") this.#recordIds = [];
    if (!hasWorked) this.#tell({ name: "guard.no-progress", remedy, cause });
    return hasWorked;
  }

  #deadEnd(): GuardStep {
    return this.#calls === 0 && this.estimate.lowTokens < (this.#window ?? Infinity) ? "stuck-unsure" : "stuck";
  }

  #isAborted(): boolean {
    if (this.#signal?.aborted !== true) return false;
    this.error ??= new ThroughlineError("ABORTED", "the guarded call was aborted", { cause: this.#signal.reason });
    return true;
  }

  #attempt(attempt: number | null, outcome: GuardAttempt["outcome"]): GuardAttempt {
    const hasOverflow = outcome === "overflowed" || outcome === "broke-off";
    const overflow = hasOverflow ? this.#overflow : null;
    return { attempt, remedies: [...this.#effective], estimatedTokens: this.estimate.tokens, outcome, overflow };
  }

  #emitAttempt(attempt: number | null): void {
    const { estimate } = this;
    const remedies = [...this.#effective];
    this.#tell({ name: "guard.attempt", attempt, remedies, estimate, windowTokens: this.#window });
  }

  #tell(event: GuardEvent): void {
    tellListener(this.#options.onEvent, event);
  }
}
