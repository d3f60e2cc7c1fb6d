import type { SessionEntry } from "@throughline/core";
import type { LearnedLimits } from "@throughline/guard/internal";
import { type Actual, beginCycle, crossThresholds, type TokenCounter } from "@throughline/tokens/internal";
import { type ContextEstimate, type Gauge, observe, type Spend } from "@throughline/tokens";
import { type CallUsage, nothingSpent, readUsage } from "@throughline/core/internal";
import type { CallFacts } from "./call-record.ts";
import type { SessionLog } from "./session-log.ts";
import { keptLearning, readLearning, spendMore, type SessionLearning } from "./session-learning.ts";
import type { PromptPrefix } from "./prompt.ts";
import type { Turn } from "./turn.ts";

export interface AnsweredCall {
  readonly usage: CallUsage;
  readonly limits: LearnedLimits;
  readonly counter: TokenCounter;
  /** Holds the measured size before the call. */
  readonly actual: Actual | null;
  /** Is null when the guard changed the request, so that the estimate does not describe it. */
  readonly sent: readonly unknown[] | null;
  readonly prefix: PromptPrefix;
}

/** Counts what a session uses and learns, and computes the changes of its entry. */
export class TurnLedger {
  learning: SessionLearning;
  windowTokens: number | null = null;
  #estimate: ContextEstimate = { tokens: 0, lowTokens: 0, highTokens: 0, source: "heuristic" };
  readonly #log: SessionLog;
  #cycle: number;
  #kept: SessionLearning;
  #used: Spend = nothingSpent;

  constructor(log: SessionLog) {
    this.#log = log;
    this.learning = readLearning(log.entry);
    this.#kept = this.learning;
    this.#cycle = log.facts.cycle;
  }

  /** Returns what the calls of the turn used, and what they cost. */
  get used(): TurnUsage {
    return turnUsage(this.#used);
  }

  /**
   * Records the estimate of the next call. Returns the threshold that its prompt crosses for the first time in this
   * cycle.
   */
  estimated(estimate: ContextEstimate, windowTokens: number | null, thresholds: readonly number[]): number | null {
    this.#estimate = estimate;
    this.windowTokens = windowTokens;
    this.#followCycle();
    const { state, firedPercent } = crossThresholds(this.learning.thresholds, this.prompt().percent, thresholds);
    if (firedPercent !== null) this.learning = { ...this.learning, thresholds: state };
    return firedPercent;
  }

  /** Returns the gauge of the prompt that was estimated last. */
  prompt(): Gauge {
    return this.#log.gauge(this.#estimate, this.windowTokens);
  }

  /**
   * Returns the gauge of the session now, as the newest call measured it. Without a valid measurement it is that of the
   * last prompt.
   */
  now(): Gauge {
    const { measured } = this.#log.facts;
    if (measured === null) return this.prompt();
    const { occupancyTokens: tokens } = measured;
    const estimate: ContextEstimate = { tokens, lowTokens: tokens, highTokens: tokens, source: "actual" };
    return this.#log.gauge(estimate, this.windowTokens);
  }

  /** A compaction or a reset begins a new cycle, even when another process wrote it. */
  #followCycle(): void {
    const { cycle } = this.#log.facts;
    if (cycle === this.#cycle) return;
    this.#cycle = cycle;
    this.learning = { ...this.learning, thresholds: beginCycle(this.learning.thresholds) };
  }

  learned(limits: LearnedLimits): void {
    if (limits !== this.learning.limits) this.learning = { ...this.learning, limits };
  }

  answered(call: AnsweredCall): void {
    const { usage, counter } = call;
    this.#used = spendMore(this.#used, usage, counter.model);
    const spend = spendMore(this.learning.spend, usage, counter.model);
    this.learning = { ...this.learning, spend, calibration: this.#observed(call) };
  }

  #observed({ usage, counter, actual, sent, prefix }: AnsweredCall): SessionLearning["calibration"] {
    const { calibration } = this.learning;
    const observedTokens = usage.promptTokens - (actual?.tokens ?? 0);
    // Small prompts are observed too, because they show the overhead of a message beside its text.
    if (sent === null || observedTokens <= 0) return calibration;
    const counted = counter.countMessages(sent.slice(actual?.coversMessages ?? 0) as readonly object[]);
    if (actual !== null) return observe(calibration, { counter, counted, observedTokens });
    const tools = counter.countTools(prefix.tools);
    const systemTokens = prefix.system === null ? 0 : counter.countText(prefix.system);
    const all = {
      bareTokens: counted.bareTokens + tools.bareTokens + systemTokens,
      fixedTokens: counted.fixedTokens + tools.fixedTokens,
      messages: counted.messages,
    };
    return observe(calibration, { counter, counted: all, observedTokens });
  }

  /** Returns the changed fields of the entry at a call or at the end of a turn. `updatedAt` is always set. */
  patch(facts: {
    readonly nowMs: number;
    readonly model: { readonly provider: string; readonly modelId: string };
    readonly usage: CallUsage | null;
    /** Is true when a call of this turn carried a system prompt. */
    readonly isSystemSent: boolean;
    /** States whether the ending turn was aborted; null when no turn ends. */
    readonly isAborted: boolean | null;
  }): Readonly<Record<string, unknown>> {
    const { spend } = this.learning;
    const { usage, model, nowMs, isSystemSent, isAborted } = facts;
    const wanted: Record<string, unknown> = { modelProvider: model.provider, model: model.modelId };
    if (this.windowTokens !== null) wanted["contextTokens"] = this.windowTokens;
    if (usage !== null) {
      wanted["inputTokens"] = spend.input;
      wanted["outputTokens"] = spend.output;
      wanted["totalTokens"] = usage.occupancyTokens;
      wanted["totalTokensFresh"] = true;
    }
    if (isSystemSent) wanted["systemSent"] = true;
    // An entry without the field stays without it, so that the patch is smaller.
    if (isAborted === true || (isAborted === false && this.#log.entry.abortedLastRun === true))
      wanted["abortedLastRun"] = isAborted;
    if (this.learning !== this.#kept) wanted["throughline"] = keptLearning(this.learning);
    this.#kept = this.learning;
    return { updatedAt: nowMs, ...changed(wanted, this.#log.entry) };
  }
}

function changed(wanted: Readonly<Record<string, unknown>>, entry: SessionEntry): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const field in wanted) if (wanted[field] !== entry[field]) patch[field] = wanted[field];
  return patch;
}

type TurnUsage = Pick<Turn, "usage" | "costUsd">;

function turnUsage({ calls, input, output, cacheRead, cacheWrite, reasoning, costUsd }: Spend): TurnUsage {
  if (calls === 0) return { usage: null, costUsd: null };
  return { usage: { input, output, cacheRead, cacheWrite, reasoning }, costUsd };
}

/** Returns the usage of an earlier turn from the records of its calls. */
export function usageOfCalls(calls: readonly CallFacts[]): TurnUsage {
  let spend = nothingSpent;
  for (const { actual, provider, model: modelId } of calls) {
    const [input, output, cacheRead, cacheWrite] = actual ?? [];
    const usage = readUsage({ input, output, cacheRead, cacheWrite });
    if (usage !== null) spend = spendMore(spend, usage, { provider, modelId });
  }
  return turnUsage(spend);
}
