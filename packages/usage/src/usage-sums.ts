import { costOf } from "@throughline/tokens/internal";
import type { ModelPrices } from "@throughline/tokens/internal";
import type { LedgerSums } from "./ledger.ts";

/** Holds the tokens, the time and the cost of some calls. */
export interface UsageTotals {
  /** Counts the calls of models. */
  readonly calls: number;
  /** States the time that models worked on the calls, in seconds, as far as the log shows it. */
  readonly seconds: number;
  /** Counts prompt tokens that no cache served. */
  readonly input: number;
  /** Counts prompt tokens that a cache served. */
  readonly cacheRead: number;
  /** Counts the tokens written to a cache. */
  readonly cacheWrite: number;
  /** Counts the tokens that models wrote. */
  readonly output: number;
  /** Counts the reasoning tokens. They are part of `output`. */
  readonly reasoning: number;
  /** States the cost of the calls whose cost is known, in US dollars. Null when it is known of none. */
  readonly costUsd: number | null;
  /** States the part of `costUsd` that the programs which wrote the calls stated themselves, in US dollars. */
  readonly statedUsd: number;
  /** Counts the calls without a known cost. Their tokens are part of the sums. */
  readonly unpricedCalls: number;
  /** Counts the calls that are left out because their counts cannot be right. */
  readonly doubtfulCalls: number;
}

/** Adds up groups of calls. */
export class UsageSum {
  #calls = 0;
  #milliseconds = 0;
  #input = 0;
  #cacheRead = 0;
  #cacheWrite = 0;
  #output = 0;
  #reasoning = 0;
  #costUsd = 0;
  #statedUsd = 0;
  #unpricedCalls = 0;
  #doubtfulCalls = 0;

  /** Returns whether the cost of the calls is known. */
  add(group: LedgerSums, prices: ModelPrices): boolean {
    const { sums } = group;
    this.#calls += sums.calls;
    this.#milliseconds += sums.milliseconds;
    this.#input += sums.input;
    this.#cacheRead += sums.cacheRead;
    this.#cacheWrite += sums.cacheWrite;
    this.#output += sums.output;
    this.#reasoning += sums.reasoning;
    this.#doubtfulCalls += sums.doubtfulCalls;
    const costUsd = costOfGroup(group, prices);
    if (costUsd === null) this.#unpricedCalls += sums.calls;
    else this.#costUsd += costUsd;
    this.#statedUsd += sums.statedUsd;
    return costUsd !== null;
  }

  totals(): UsageTotals {
    const isKnown = this.#calls === 0 || this.#unpricedCalls < this.#calls;
    return {
      calls: this.#calls,
      seconds: Math.round(this.#milliseconds / 1000),
      input: this.#input,
      cacheRead: this.#cacheRead,
      cacheWrite: this.#cacheWrite,
      output: this.#output,
      reasoning: this.#reasoning,
      costUsd: isKnown ? this.#costUsd : null,
      statedUsd: this.#statedUsd,
      unpricedCalls: this.#unpricedCalls,
      doubtfulCalls: this.#doubtfulCalls,
    };
  }
}

/** The calls of a group have one price, so that their sum costs what they cost together. */
function costOfGroup({ provider, model, promptStep, isStated, sums }: LedgerSums, prices: ModelPrices): number | null {
  if (isStated) return sums.statedUsd;
  if (sums.calls === 0) return 0;
  const usage = { ...sums, promptTokens: promptStep + 1 };
  return model === null ? null : (costOf(usage, { provider, modelId: model }, prices)?.totalUsd ?? null);
}
