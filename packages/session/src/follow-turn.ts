import {
  type Clock,
  hasErrorCode,
  type OpenTurn,
  type PartialReply,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { isUnreadablePartial } from "@throughline/core/internal";
import type { HoldBack } from "./held-deltas.ts";
import { isReply } from "./message-parts.ts";
import { hasReplyAfter } from "./recover-reply.ts";
import { readTurnMark, type TurnMark } from "./turn-mark.ts";
import { textOfContent } from "./window-facts.ts";

/** The partial is read in this interval. Together with the writer's 700 ms, a reader is at most 2 s behind. */
const pollMs = 500;

/** Describes what happened in a turn that another process runs. */
export type FollowedEvent =
  /** Replaces the text that the reader has. */
  | { readonly kind: "snapshot"; readonly text: string }
  | { readonly kind: "piece"; readonly text: string }
  | { readonly kind: "record"; readonly record: StoredRecord }
  /** The mark is null when the turn has ended without one, because its process is gone or the session is another. */
  | { readonly kind: "end"; readonly mark: TurnMark | null };

interface FollowTurnOptions {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  /** Holds the state of the session with the open turn. */
  readonly state: SessionState;
  readonly turn: OpenTurn;
  readonly clock: Clock;
  /** Returns true when no process can write for the turn any more. */
  readonly isDead: (turn: OpenTurn) => boolean;
  /** Withholds text of stored replies; a partial holds only what was shown. */
  readonly holdBack: HoldBack | null;
  readonly signal: AbortSignal;
}

/** Follows a turn of another process through the store until it ends. The first event is the text so far. */
export async function* followTurn(options: FollowTurnOptions): AsyncGenerator<FollowedEvent, void, void> {
  const { store, ref, state, signal } = options;
  const leaving = new AbortController();
  const either = AbortSignal.any([signal, leaving.signal]);
  const bell = new WatchBell(store, ref, state.head.lastSeq, either);
  const follower = new TurnFollower(options);
  try {
    yield await follower.first();
    while (!signal.aborted) {
      const { events, isOver } = await follower.look();
      yield* events;
      if (isOver) return;
      await bell.wait(options.clock, either);
    }
  } finally {
    leaving.abort();
  }
}

class TurnFollower {
  readonly #options: FollowTurnOptions;
  readonly #text = new FollowedText();
  #seq: number;
  /** Holds the seq of the newest reply. A partial of an earlier call is the beginning of it. */
  #replySeq = 0;
  #isSuspect = false;

  constructor(options: FollowTurnOptions) {
    this.#options = options;
    this.#seq = options.state.head.lastSeq;
  }

  async first(): Promise<FollowedEvent> {
    const { store, ref } = this.#options;
    const partial = await this.#readPartial();
    if (partial === null || (await hasReplyAfter(store, ref, partial.afterSeq))) return this.#text.snapshot("");
    return this.#text.snapshot(partial.text);
  }

  /** The partial is read before the records, so that it is never older than they are. */
  async look(): Promise<{ readonly events: readonly FollowedEvent[]; readonly isOver: boolean }> {
    const { store, ref, state: first, turn, isDead } = this.#options;
    const partial = await this.#readPartial();
    const state = await store.load(ref);
    if (state === null || state.sessionId !== first.sessionId) return over([], null);
    const events: FollowedEvent[] = [];
    const mark = state.head.lastSeq > this.#seq ? await this.#readRecords(state.head.lastSeq, events) : null;
    if (mark !== null) return over(events, mark);
    if (partial !== null && partial.afterSeq >= this.#replySeq) events.push(...this.#text.grow(partial.text));
    const open = state.head.turn;
    if (open?.turnId !== turn.turnId) return over(events, null);
    const isOver = this.#isSuspect && isDead(open);
    // The process may have closed the turn after the state was read and before it ended. The state is read again.
    this.#isSuspect = isDead(open);
    if (isOver) return over(events, null);
    return this.#isSuspect ? this.#again(events) : { events, isOver: false };
  }

  async #again(events: readonly FollowedEvent[]): ReturnType<TurnFollower["look"]> {
    const next = await this.look();
    return { ...next, events: [...events, ...next.events] };
  }

  async #readRecords(lastSeq: number, events: FollowedEvent[]): Promise<TurnMark | null> {
    const { store, ref, turn, holdBack } = this.#options;
    for await (const { records } of store.read(ref, { afterSeq: this.#seq, beforeSeq: lastSeq + 1 }))
      for (const record of records) {
        this.#seq = record.seq;
        if (isReply(record)) {
          this.#replySeq = record.seq;
          const text = textOfContent((record.record["message"] as { readonly content?: unknown }).content);
          events.push(...this.#text.settle(holdBack?.(text, true) === true ? "" : text));
        }
        events.push({ kind: "record", record });
        const mark = readTurnMark(record.record);
        if (mark !== null && mark.turnId === turn.turnId && mark.state !== "open") return mark;
      }
    return null;
  }

  async #readPartial(): Promise<PartialReply | null> {
    const { store, ref, turn } = this.#options;
    try {
      const partial = (await store.partials?.read(ref)) ?? null;
      return partial?.turnId === turn.turnId && partial.fence === turn.fence ? partial : null;
    } catch (error) {
      if (hasErrorCode(error, "SESSION_NOT_FOUND") || isUnreadablePartial(error)) return null;
      throw error;
    }
  }
}

function over(
  events: readonly FollowedEvent[],
  mark: TurnMark | null,
): { readonly events: readonly FollowedEvent[]; readonly isOver: true } {
  return { events: [...events, { kind: "end", mark }], isOver: true };
}

/** Turns whole texts into the pieces that a reader lacks. */
class FollowedText {
  /** Holds the text of the replies that were stored since the first snapshot. */
  #settled = "";
  #given = "";

  snapshot(text: string): FollowedEvent {
    this.#given = text;
    return { kind: "snapshot", text: this.#settled + text };
  }

  grow(text: string): readonly FollowedEvent[] {
    if (text === this.#given) return [];
    // Another attempt began its text again, or the redaction hook changed what was there.
    if (!text.startsWith(this.#given)) return [this.snapshot(text)];
    const piece = text.slice(this.#given.length);
    this.#given = text;
    return [{ kind: "piece", text: piece }];
  }

  settle(text: string): readonly FollowedEvent[] {
    const events = this.grow(text);
    this.#settled += this.#given;
    this.#given = "";
    return events;
  }
}

/** Reports that the session has grown. The poll takes over where the store cannot watch, and once the watch has ended. */
class WatchBell {
  #pages: AsyncIterator<unknown> | null;
  #ring: Promise<void> | null = null;

  constructor({ watch }: SessionStore, ref: SessionRef, afterSeq: number, signal: AbortSignal) {
    this.#pages = watch?.watch(ref, { afterSeq, signal })[Symbol.asyncIterator]() ?? null;
  }

  /** Resolves when the session has grown, or after the interval of the poll. */
  async wait(clock: Clock, signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const slept = clock.sleep(pollMs, AbortSignal.any([signal, timer.signal])).catch(() => {});
    try {
      await Promise.race([slept, ...this.#rings()]);
    } finally {
      timer.abort();
    }
  }

  #rings(): readonly Promise<void>[] {
    const pages = this.#pages;
    if (pages === null) return [];
    this.#ring ??= pages.next().then(
      ({ done }) => {
        this.#ring = null;
        if (done === true) this.#pages = null;
      },
      // The next look at the session finds out why it cannot be watched.
      () => void (this.#pages = null),
    );
    return [this.#ring];
  }
}
