import type { StoredRecord } from "@throughline/core";
import { isFields, readUsage, type Steps, throughlineKind } from "@throughline/core/internal";
import type { ModelPrices } from "@throughline/tokens/internal";
import { CallCounter, type CountedCall, nothingCounted, sumNames, type UsageSums } from "./count-calls.ts";
import { UsageSum, type UsageTotals } from "./usage-sums.ts";

/** Holds the usage from one prompt to the next. */
export interface TurnUsage extends UsageTotals {
  /** States the seq of the prompt; null for calls before the first one. */
  readonly seq: number | null;
  readonly tsMs: number | null;
  /** Names the model of the last call as `provider/model`, or the model alone; null when none is known. */
  readonly model: string | null;
  /** States the time from the first request to the first byte of its answer, in milliseconds; null when unknown. */
  readonly firstByteMs: number | null;
  /** States how full the window was at last, in tokens: the prompt and the reply of the last call. */
  readonly fillTokens: number | null;
  /** States that a fork shares the turn with its origin, where its calls count. */
  readonly isShared: boolean;
}

/** Holds the usage of one session. */
export interface SessionUsage {
  readonly turns: readonly TurnUsage[];
  /** Adds up the turns that are not shared. */
  readonly total: UsageTotals;
  /** States whether any call was counted. */
  readonly hasUsage: boolean;
}

type CallGroup = CountedCall["group"];

interface GrowingTurn {
  readonly seq: number | null;
  readonly tsMs: number | null;
  /** Few models answer between two prompts. */
  readonly groups: { readonly group: CallGroup; readonly sums: UsageSums }[];
  model: string | null;
  firstByteMs: number | null;
  fillTokens: number | null;
}

/**
 * Adds up the calls of one session by prompt. It takes the records in the order of their seq and holds no content. Each
 * call counts once, also if a resumed program repeats its lines.
 */
export class SessionUsageSum {
  readonly #counter = new CallCounter(nothingCounted);
  readonly #turns: GrowingTurn[] = [];
  readonly #counted = new Set<string>();

  /** @param isPrompt whether a person said something in the record */
  take(stored: StoredRecord, isPrompt: boolean): void {
    const { seq, tsMs, storedAtMs, record } = stored;
    if (isPrompt) this.#turns.push(newTurn(seq, tsMs ?? storedAtMs));
    const { calls } = this.#counter;
    this.#counter.add(stored);
    // The counter keeps the calls for a ledger. Here they are added at once.
    if (calls.length > 0) for (const call of calls.splice(0)) this.#add(call);
    const turn = this.#turns.at(-1);
    if (turn === undefined) return;
    turn.fillTokens = fillOf(record) ?? turn.fillTokens;
    turn.firstByteMs ??= firstByteOf(record);
  }

  #add({ key, isFurtherPart, group, sums }: CountedCall): void {
    if (!isFurtherPart) {
      if (this.#counted.has(key)) return;
      this.#counted.add(key);
    }
    let turn = this.#turns.at(-1);
    if (turn === undefined) this.#turns.push((turn = newTurn(null, null)));
    const found = turn.groups.find((each) => isSameGroup(each.group, group));
    const own = found ?? { group, sums: zeroSums() };
    if (found === undefined) turn.groups.push(own);
    for (const name of sumNames) own.sums[name] += sums[name] ?? 0;
    const { provider, model } = group;
    turn.model = model === null ? turn.model : provider === null ? model : `${provider}/${model}`;
  }

  /** @param sharedSeq the last record that a fork shares with its origin; 0 for a session that is no fork */
  *usage(prices: ModelPrices, sharedSeq: number): Steps<SessionUsage> {
    const total = new UsageSum();
    const turns: TurnUsage[] = [];
    let hasUsage = false;
    for (const { seq, tsMs, groups, model, firstByteMs, fillTokens } of this.#turns) {
      yield;
      const isShared = (seq ?? 0) <= sharedSeq && sharedSeq > 0;
      const own = new UsageSum();
      for (const { group, sums } of groups) {
        own.add({ ...group, sums }, prices);
        if (!isShared) total.add({ ...group, sums }, prices);
      }
      hasUsage ||= groups.length > 0;
      turns.push({ seq, tsMs, model, ...own.totals(), firstByteMs, fillTokens, isShared });
    }
    return { turns, total: total.totals(), hasUsage };
  }
}

function newTurn(seq: number | null, tsMs: number | null): GrowingTurn {
  return { seq, tsMs, groups: [], model: null, firstByteMs: null, fillTokens: null };
}

function isSameGroup(one: CallGroup, other: CallGroup): boolean {
  const isSamePrice = one.promptStep === other.promptStep && one.isStated === other.isStated;
  return isSamePrice && one.model === other.model && one.provider === other.provider;
}

function zeroSums(): UsageSums {
  return Object.fromEntries(sumNames.map((name) => [name, 0])) as UsageSums;
}

function fillOf(record: StoredRecord["record"]): number | null {
  const { message, usage, kind } = record;
  if (record.type === "usage")
    return kind === "claude-code.reply" || kind === "copilot-cli.run"
      ? null
      : (readUsage(usage)?.occupancyTokens ?? null);
  const isReply = record.type === "message" && isFields(message) && message["role"] === "assistant";
  return isReply ? (readUsage(message["usage"])?.occupancyTokens ?? null) : null;
}

/** A gateway knows when the first byte came. */
function firstByteOf(record: StoredRecord["record"]): number | null {
  const data = throughlineKind(record) === "exchange" ? record["data"] : null;
  const { startedMs, firstByteMs } = isFields(data) ? data : {};
  if (typeof startedMs !== "number" || typeof firstByteMs !== "number") return null;
  const ms = firstByteMs - startedMs;
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}
