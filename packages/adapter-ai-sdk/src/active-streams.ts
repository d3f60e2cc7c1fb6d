import type { OpenTurn, RandomSource, RecordDraft, SessionState, TurnRequest } from "@throughline/core";
import { type Fields, throughlineDraft } from "@throughline/core/internal";
import { processOwners } from "@throughline/core/internal/node";

/**
 * A stream counts as ended when its process has renewed nothing for this time, in milliseconds. A process of this
 * machine is known to be gone earlier.
 */
export const leaseMs = 10_000;

type ChatState = Pick<SessionState, "entry" | "head">;

/**
 * Returns the open turn of the stream that answers in a chat, also when its process has died. It is null without a
 * stream, and when the open turn belongs to another program.
 */
export function streamTurnOf(state: ChatState | null): OpenTurn | null {
  const turn = state?.head.turn ?? null;
  return turn !== null && turn.turnId === state?.entry["activeStreamTurn"] ? turn : null;
}

/** Returns the stream that answers now. It is null when no process answers or the process died. */
export function activeStreamOf(state: ChatState | null, nowMs: number): string | null {
  const id = state?.entry["activeStreamId"];
  const turn = streamTurnOf(state);
  if (typeof id !== "string" || turn === null) return null;
  return turn.leaseUntilMs > nowMs && processOwners().stateOf(turn.owner) !== "gone" ? id : null;
}

/** Describes what a save does to the stream of a chat. */
export interface StreamChange {
  readonly hasNews: boolean;
  readonly turn: TurnRequest | null;
  readonly drafts: readonly RecordDraft[];
  readonly entry: Fields;
  /** A new stream opens its turn in a second append, because one append cannot close a turn and open another. */
  readonly isWhole: boolean;
  readonly isOpen: boolean;
}

/**
 * Builds the change to a stream: its turn is open for as long as it answers. Saves of every process join the turn, and
 * other programs find the session busy.
 * @param asked the new stream, null for none, or undefined to leave it
 */
export function streamChange(
  state: SessionState | null,
  asked: string | null | undefined,
  { nowMs, random }: { readonly nowMs: number; readonly random: RandomSource },
): StreamChange {
  const open = streamTurnOf(state);
  if (asked === undefined || (asked !== null && activeStreamOf(state, nowMs) === asked)) {
    const turn = open === null ? null : ({ action: "within", fence: open.fence } as const);
    return { hasNews: false, turn, drafts: [], entry: {}, isWhole: true, isOpen: open !== null };
  }
  const mark = (turnId: string, fields: Fields): readonly RecordDraft[] => [
    throughlineDraft("turn", { turnId, ...fields }),
  ];
  if (open !== null || asked === null) {
    const close = open === null ? null : ({ action: "close", fence: open.fence } as const);
    const drafts = open === null ? [] : mark(open.turnId, { state: asked === null ? "done" : "aborted" });
    const entry = { activeStreamId: undefined, activeStreamTurn: undefined, activeStreamMessage: undefined };
    const hasNews = open !== null || asked !== null || state?.entry["activeStreamId"] !== undefined;
    return { hasNews, turn: close, drafts, entry, isWhole: asked === null, isOpen: false };
  }
  const turnId = random.uuid();
  const fence = (state?.head.fence ?? 0) + 1;
  const owner = processOwners().self;
  const turn = { action: "open", turnId, owner, fence, leaseUntilMs: nowMs + leaseMs } as const;
  const drafts = mark(turnId, { owner, fence, state: "open" });
  const entry = { activeStreamId: asked, activeStreamTurn: turnId, activeStreamMessage: undefined };
  return { hasNews: true, turn, drafts, entry, isWhole: true, isOpen: true };
}

/** Renews the streams that this process answers in. Its timers do not keep the process alive. */
export class LiveStreams {
  readonly #timers = new Map<string, { readonly streamId: string; readonly timer: NodeJS.Timeout }>();

  /**
   * Renews a stream from now on and stops renewing the previous one of the same chat.
   * @param renew resolves to false when the turn of the stream has ended
   */
  keep(chat: string, streamId: string, renew: () => Promise<boolean>): void {
    if (this.#timers.get(chat)?.streamId === streamId) return;
    this.stop(chat);
    const timer = setInterval(() => {
      // The next renewal repeats one that failed. The lease is three times as long.
      void renew()
        .catch(() => true)
        .then((isOpen) => {
          if (!isOpen) this.stop(chat, streamId);
        });
    }, leaseMs / 3).unref();
    this.#timers.set(chat, { streamId, timer });
  }

  /** Stops renewing this stream of a chat, by default any. */
  stop(chat: string, streamId?: string): void {
    const known = this.#timers.get(chat);
    if (known === undefined || (streamId !== undefined && known.streamId !== streamId)) return;
    clearInterval(known.timer);
    this.#timers.delete(chat);
  }
}
