import { ThroughlineError, type Clock, type OpenTurn } from "@throughline/core";
import type { TurnOwners } from "./process-owners.ts";
import type { Emit } from "./session-event.ts";
import type { QueuePlace, TurnQueue, WaitingTurn } from "./turn-queue.ts";

const firstPauseMs = 20;
const longestPauseMs = 500;
/** The reason is a constant text. A new error with a stack for each wait would cost time. */
const waitOver = "the wait is over";

export interface TurnWaitOptions {
  readonly clock: Clock;
  readonly owners: TurnOwners;
  /** The first signal that aborts ends the wait. */
  readonly signals: readonly (AbortSignal | undefined)[];
  /** @default 600000 */
  readonly waitMs: number | undefined;
  /** Sets how to react to a turn that is open elsewhere. @default "queue" for a turn of this process, else "reject" */
  readonly whenBusy?: "queue" | "reject" | undefined;
  readonly emit?: Emit | null;
}

/** Limits how long a turn waits in total, in the queue and for other processes. */
export class TurnWait {
  readonly #options: TurnWaitOptions;
  readonly #untilMs: number;
  #pauseMs = firstPauseMs;
  #isReported = false;

  constructor(options: TurnWaitOptions) {
    this.#options = options;
    this.#untilMs = options.clock.nowMs() + (options.waitMs ?? 600_000);
  }

  /**
   * Enters the queue.
   * @throws {ThroughlineError} ABORTED; SESSION_BUSY when the wait took too long or too many turns wait
   */
  async enter(queue: TurnQueue, own: WaitingTurn): Promise<QueuePlace> {
    const { holder } = queue;
    if (holder === null) return queue.enter(own, undefined);
    const { clock, owners, signals } = this.#options;
    const controller = new AbortController();
    const end = forward(signals, controller);
    let isLate = false;
    const late = (): void => {
      isLate = true;
      controller.abort(waitOver);
    };
    // The sleep rejects when the wait ends in another way. The rejection needs no handling.
    void clock.sleep(this.#untilMs - clock.nowMs(), controller.signal).then(late, () => null);
    try {
      return await queue.enter(own, controller.signal);
    } catch (error) {
      const isTooLate = isLate && error instanceof ThroughlineError && error.cause === waitOver;
      throw isTooLate ? busyHere(holder, owners.self) : error;
    } finally {
      end();
      controller.abort(waitOver);
    }
  }

  /**
   * Waits until no new message arrived for `debounceMs`, or until the wait took too long.
   * @throws {ThroughlineError} ABORTED
   */
  async debounce(queue: TurnQueue, debounceMs: number): Promise<void> {
    const { clock, signals } = this.#options;
    const controller = new AbortController();
    const end = forward(signals, controller);
    try {
      for (;;) {
        const leftMs = Math.min(queue.lastArrivalMs + debounceMs, this.#untilMs) - clock.nowMs();
        if (leftMs <= 0) return;
        await clock.sleep(leftMs, controller.signal);
      }
    } catch (cause) {
      throw controller.signal.aborted ? waitAborted(controller.signal) : cause;
    } finally {
      end();
    }
  }

  /**
   * Waits a moment for a turn that is open elsewhere, reported once. @throws `busy` when the turn must not wait for it,
   * and when the wait took too long
   */
  async elsewhere(turn: OpenTurn | null, busy: unknown): Promise<void> {
    const { owners, whenBusy, emit } = this.#options;
    const isOwn = turn !== null && owners.stateOf(turn.owner) === "self";
    if (whenBusy === "reject" || (whenBusy === undefined && !isOwn)) throw busy;
    if (!this.#isReported)
      emit?.({ name: "turn.queued", owner: turn?.owner ?? null, leaseUntilMs: turn?.leaseUntilMs ?? null });
    this.#isReported = true;
    await this.#pause(turn, busy);
  }

  /** Pauses longer each time, but not beyond the end of the turn's lease. */
  async #pause(turn: OpenTurn | null, busy: unknown): Promise<void> {
    const { clock, signals } = this.#options;
    const nowMs = clock.nowMs();
    if (nowMs >= this.#untilMs) throw busy;
    const leaseLeftMs = turn === null ? longestPauseMs : Math.max(1, turn.leaseUntilMs - nowMs + 1);
    const pauseMs = Math.min(this.#pauseMs, leaseLeftMs, this.#untilMs - nowMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
    const controller = new AbortController();
    const end = forward(signals, controller);
    try {
      await clock.sleep(pauseMs, controller.signal);
    } catch (cause) {
      throw controller.signal.aborted ? waitAborted(controller.signal) : cause;
    } finally {
      end();
    }
  }
}

/** The error code is always ABORTED, even when the caller's signal has another reason. */
function waitAborted({ reason }: AbortSignal): ThroughlineError {
  if (ThroughlineError.isInstance(reason) && reason.code === "ABORTED") return reason;
  return new ThroughlineError("ABORTED", "The wait for the session was aborted.", { cause: reason });
}

/** Aborts the controller with the first signal that aborts. The returned function removes the listeners. */
export function forward(signals: readonly (AbortSignal | undefined)[], controller: AbortController): () => void {
  const abort = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const signal of signals) {
    if (signal?.aborted === true) controller.abort(signal.reason);
    signal?.addEventListener("abort", abort, { once: true });
  }
  return () => {
    for (const signal of signals) signal?.removeEventListener("abort", abort);
  };
}

export function abortedBefore(signal: AbortSignal): ThroughlineError {
  return new ThroughlineError("ABORTED", "The turn was aborted before it began.", { cause: signal.reason });
}

export function busyHere(
  holder: { readonly turnId: string; readonly sinceMs: number },
  owner: string,
): ThroughlineError {
  const { turnId, sinceMs } = holder;
  return new ThroughlineError("SESSION_BUSY", "This process is still answering in this session.", {
    outcome: "not-applied",
    details: { turnId, owner, sinceMs },
    remedy: 'Try again when the answer is there, or pass `whenBusy: "queue"`.',
  });
}
