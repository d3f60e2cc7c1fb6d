import type { Context } from "./build-context.ts";
import type { NeutralMessage } from "./neutral-message.ts";
import type { OmittedRange } from "./omitted-ranges.ts";

export interface ContextLimit {
  /** The most tokens the messages may take by `countTokens`. @default no limit */
  readonly maxTokens?: number;
  /** Tokens of one message. Asked once for each; wanted with `maxTokens`. */
  readonly countTokens?: (message: NeutralMessage) => number;
  /** The most messages. @default no limit */
  readonly maxMessages?: number;
  /**
   * What stays of the limit when it is met. The less, the longer the beginning then stays where it is, which is what a
   * provider's prompt cache needs. @default 0.7
   */
  readonly keepShare?: number;
  /** Whether the first request of the conversation stays in any case. @default false */
  readonly pinFirstRequest?: boolean;
}

/** A context that was cut to a limit. */
export interface LimitedContext extends Context {
  /** The first record that stays in its place; null when nothing had to go. */
  readonly cutAtId: string | null;
  /** The record with which the limit was met: what came after it was written with this beginning. */
  readonly cutWhenId: string | null;
}

/**
 * Leaves the oldest messages out. The cut lies before a user message, or inside the newest turn before a reply, whose
 * request then stays. Where it lies follows from the messages up to the one that met the limit, so two calls with the
 * same limit have the same beginning until the limit is met again. A summary always stays.
 */
export function limitContext(context: Context, limit: ContextLimit): LimitedContext {
  const cutter = new Cutter(context.messages, limit);
  for (const index of context.messages.keys()) cutter.take(index);
  const { start, cutWhen } = cutter;
  if (cutWhen < 0) return { ...context, cutAtId: null, cutWhenId: null };
  const kept = new Set<number>(cutter.pinned());
  for (let index = start; index < context.messages.length; index++) kept.add(index);
  const messages = context.messages.flatMap((message, index) => {
    if (!kept.has(index)) return [];
    return index <= cutWhen && !message.isPrefixChanged ? [{ ...message, isPrefixChanged: true }] : [message];
  });
  return {
    ...context,
    messages,
    recordsInContext: messages.length,
    omitted: withOmitted(context, kept),
    cutAtId: context.messages[start]?.recordId ?? null,
    cutWhenId: context.messages[cutWhen]?.recordId ?? null,
  };
}

class Cutter {
  start: number;
  /** The message with which the limit was met last; -1 when it never was. */
  cutWhen = -1;
  private readonly messages: readonly NeutralMessage[];
  private readonly limit: ContextLimit;
  private readonly tokens: number[] = [];
  /** After the summary, which stays. */
  private readonly first: number;
  private readonly firstRequest: number;
  private keptTokens = 0;
  private headTokens = 0;
  /** The request of the turn the cut lies in; -1 when it lies before a turn. */
  private turnRequest = -1;

  constructor(messages: readonly NeutralMessage[], limit: ContextLimit) {
    this.messages = messages;
    this.limit = limit;
    this.first = messages[0]?.role === "compactionSummary" ? 1 : 0;
    this.start = this.first;
    this.firstRequest = messages.findIndex(({ role }) => role === "user");
  }

  take(index: number): void {
    const message = this.messages[index] as NeutralMessage;
    const tokens = this.limit.maxTokens === undefined ? 0 : (this.limit.countTokens?.(message) ?? 0);
    this.tokens.push(tokens);
    if (index < this.first) {
      this.headTokens += tokens;
      return;
    }
    this.keptTokens += tokens;
    if (!this.fits(this.start, this.keptTokens, index, 1)) this.cut(index);
  }

  /** Messages that stay although they lie before the cut. */
  pinned(start: number = this.start): readonly number[] {
    const pinned = this.first === 1 ? [0] : [];
    if (this.limit.pinFirstRequest === true && this.firstRequest >= 0) pinned.push(this.firstRequest);
    if (this.turnRequest >= 0) pinned.push(this.turnRequest);
    return pinned.filter((index) => index < start);
  }

  private fits(start: number, keptTokens: number, end: number, share: number): boolean {
    const { maxTokens = Infinity, maxMessages = Infinity } = this.limit;
    const pinned = this.pinned(start);
    const pinnedTokens = pinned.reduce((sum, index) => sum + (this.tokens[index] ?? 0), 0);
    const count = end - start + 1 + pinned.length;
    return keptTokens + pinnedTokens <= maxTokens * share && count <= maxMessages * share;
  }

  private cut(end: number): void {
    const share = this.limit.keepShare ?? 0.7;
    const turn = this.find(end, share, (message) => message.role === "user");
    const newest = this.newestTurn(end);
    // The newest turn stays whole if it fits at all; else its request does, with the newest of its replies.
    const isNewestTooLarge = turn === null && newest > this.start && !this.fits(newest, this.sum(newest, end), end, 1);
    if (turn !== null) this.moveTo(turn, -1, end);
    else if (newest > this.start && !isNewestTooLarge) this.moveTo(newest, -1, end);
    else this.cutInside(newest, end, share);
  }

  private cutInside(newest: number, end: number, share: number): void {
    const request = newest >= 0 ? newest : this.turnRequest;
    this.turnRequest = request;
    const reply = this.find(end, share, (message) => message.role === "assistant");
    const last = reply ?? this.lastReply(end);
    if (last !== null) this.moveTo(last, request, end);
    else if (newest > this.start) this.moveTo(newest, -1, end);
  }

  private moveTo(start: number, request: number, end: number): void {
    this.start = start;
    this.turnRequest = request;
    this.keptTokens = this.sum(start, end);
    this.cutWhen = end;
  }

  /** The earliest place for a cut that leaves the share. */
  private find(end: number, share: number, isPlace: (message: NeutralMessage) => boolean): number | null {
    let kept = this.keptTokens;
    for (let index = this.start; index <= end; index++) {
      const isHere = index > this.start && isPlace(this.messages[index] as NeutralMessage);
      if (isHere && this.fits(index, kept, end, share)) return index;
      kept -= this.tokens[index] ?? 0;
    }
    return null;
  }

  private newestTurn(end: number): number {
    for (let index = end; index >= this.start; index--) if (this.messages[index]?.role === "user") return index;
    return -1;
  }

  private lastReply(end: number): number | null {
    for (let index = end; index > this.start; index--) if (this.messages[index]?.role === "assistant") return index;
    return null;
  }

  private sum(start: number, end: number): number {
    let sum = 0;
    for (let index = start; index <= end; index++) sum += this.tokens[index] ?? 0;
    return sum;
  }
}

function withOmitted(context: Context, kept: ReadonlySet<number>): readonly OmittedRange[] {
  const ranges: OmittedRange[] = [...context.omitted];
  let open: { fromSeq: number; toSeq: number; reason: "window" } | null = null;
  for (const [index, { seq }] of context.messages.entries()) {
    if (kept.has(index)) {
      open = null;
    } else if (open === null) {
      open = { fromSeq: seq, toSeq: seq, reason: "window" };
      ranges.push(open);
    } else {
      open.toSeq = seq;
    }
  }
  return ranges.toSorted((one, other) => one.fromSeq - other.fromSeq);
}
