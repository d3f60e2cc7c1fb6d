import { optionKinds, type OptionTable } from "@throughline/core/internal";
import type { NeutralMessage } from "./neutral-message.ts";

/** Limits the messages of a context. */
export interface ContextLimit {
  /** Limits the tokens of the messages, as counted by `countTokens`. @default no limit */
  readonly maxTokens?: number | undefined;
  /** Counts the tokens of one message. It runs once for each message and is required with `maxTokens`. */
  readonly countTokens?: ((message: NeutralMessage) => number) | undefined;
  /** Limits the number of messages. @default no limit */
  readonly maxMessages?: number | undefined;
  /**
   * Sets the share of the limit that stays after a cut. With a smaller share the beginning stays unchanged for longer,
   * which a provider's prompt cache needs. @default 0.7
   */
  readonly keepShare?: number | undefined;
  /** Keeps the first request of the conversation in any case. @default false */
  readonly pinFirstRequest?: boolean | undefined;
  /**
   * Sets the cut of the last request. It applies until the limit is met again, regardless of the current counts.
   * @default none
   */
  readonly recorded?: WindowCut | null | undefined;
}

export const limitTable: OptionTable<ContextLimit> = {
  maxTokens: optionKinds.number({ min: 0 }),
  countTokens: optionKinds.callback,
  maxMessages: optionKinds.number({ min: 0 }),
  keepShare: optionKinds.number({ min: 0, max: 1 }),
  pinFirstRequest: optionKinds.flag,
  recorded: optionKinds.orNull(optionKinds.object),
};

/** Describes the position of a cut by the seqs of records. */
export interface WindowCut {
  /** States the first message that stays at its position. */
  readonly fromSeq: number;
  /** States the message with which the limit was met. Later messages were written with this beginning. */
  readonly metAtSeq: number;
  /** States the request that stays although it lies before the cut; null if the cut lies before a turn. */
  readonly requestSeq: number | null;
}

/**
 * Decides message by message which part of a context fits a limit. Without a cut, the next message costs only its own
 * work.
 */
export class WindowCutter {
  private readonly limit: ContextLimit;
  /** Holds a cut to restore. Until it is reached no other cut happens, because none happened when it was recorded. */
  private readonly recorded: WindowCut | null;
  private readonly messages: NeutralMessage[] = [];
  private readonly tokens: number[] = [];
  /** States the first position after the summary, because the summary always stays. */
  private first = 0;
  private start = 0;
  private firstRequest = -1;
  /** States the message with which the limit was last met, or -1. */
  private metAt = -1;
  /** States the request of the turn in which the cut lies, or -1 if the cut lies before a turn. */
  private turnRequest = -1;
  private keptTokens = 0;

  /**
   * Starts with a limit.
   * @param known the messages that are taken first; a recorded cut applies only if they contain it
   */
  constructor(limit: ContextLimit, known: readonly NeutralMessage[]) {
    this.limit = limit;
    const { recorded = null } = limit;
    const seqs = recorded === null ? [] : [recorded.fromSeq, recorded.metAtSeq];
    this.recorded = seqs.every((seq) => known.some((message) => message.seq === seq)) ? recorded : null;
  }

  /** Adds a message. Returns whether it moved the cut. */
  take(message: NeutralMessage): boolean {
    const index = this.messages.push(message) - 1;
    const tokens = this.limit.maxTokens === undefined ? 0 : (this.limit.countTokens?.(message) ?? 0);
    this.tokens.push(tokens);
    if (this.firstRequest < 0 && message.role === "user") this.firstRequest = index;
    if (index === 0 && message.role === "compactionSummary") {
      this.first = 1;
      this.start = 1;
      return false;
    }
    this.keptTokens += tokens;
    if (this.recorded !== null && this.metAt < 0) return this.cutAsRecorded(this.recorded, index);
    if (this.fits(this.start, this.keptTokens, index, 1)) return false;
    const { start } = this;
    this.moveCut(index);
    return start !== this.start;
  }

  /** Marks all messages up to a seq as written with another beginning, regardless of the current limit. */
  unbindTo(seq: number): void {
    this.metAt = Math.max(
      this.metAt,
      this.messages.findLastIndex((message) => message.seq <= seq),
    );
  }

  /** Returns the cut, or null if the limit was never met. */
  cut(): WindowCut | null {
    const [from, metAt] = [this.messages[this.start], this.messages[this.metAt]];
    if (from === undefined || metAt === undefined) return null;
    return { fromSeq: from.seq, metAtSeq: metAt.seq, requestSeq: this.messages[this.turnRequest]?.seq ?? null };
  }

  keptPlaces(): number[] {
    const places = this.pinned(this.start);
    for (let index = this.start; index < this.messages.length; index++) places.push(index);
    return places;
  }

  /**
   * Returns the kept messages. A message that was written with another beginning gets `isPrefixChanged`, because its
   * thinking is no longer valid.
   */
  kept(): NeutralMessage[] {
    return this.keptPlaces().map((index) => {
      const message = this.messages[index] as NeutralMessage;
      return index <= this.metAt && !message.isPrefixChanged ? { ...message, isPrefixChanged: true } : message;
    });
  }

  private cutAsRecorded({ fromSeq, metAtSeq, requestSeq }: WindowCut, index: number): boolean {
    if (this.messages[index]?.seq !== metAtSeq) return false;
    const placeOf = (seq: number | null): number => this.messages.findIndex((message) => message.seq === seq);
    this.moveTo(Math.max(this.first, placeOf(fromSeq)), placeOf(requestSeq), index);
    return true;
  }

  private pinned(start: number): number[] {
    if (start === 0) return [];
    const pinned = new Set<number>();
    if (this.first === 1) pinned.add(0);
    if (this.limit.pinFirstRequest === true && this.firstRequest >= 0) pinned.add(this.firstRequest);
    if (this.turnRequest >= 0) pinned.add(this.turnRequest);
    return [...pinned].filter((index) => index < start);
  }

  private fits(start: number, keptTokens: number, end: number, share: number): boolean {
    const { maxTokens = Infinity, maxMessages = Infinity } = this.limit;
    const pinned = this.pinned(start);
    const pinnedTokens = pinned.reduce((sum, index) => sum + (this.tokens[index] ?? 0), 0);
    const count = end - start + 1 + pinned.length;
    return keptTokens + pinnedTokens <= maxTokens * share && count <= maxMessages * share;
  }

  private moveCut(end: number): void {
    const share = this.limit.keepShare ?? 0.7;
    const turn = this.find(end, share, (message) => message.role === "user");
    const newest = this.newestTurn(end);
    // The newest turn stays whole if it fits at all. Otherwise its request stays, with the newest of its replies.
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
    this.metAt = end;
  }

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
