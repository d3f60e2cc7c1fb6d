import { ThroughlineError, type Clock, type OpenTurn } from "@throughline/core";
import type { TurnOwners } from "./turn-owners.ts";
import type { QueuePlace, TurnQueue, WaitingTurn } from "./turn-queue.ts";

const firstPauseMs = 20;
const longestPauseMs = 500;
/** Made once: a reason of its own each time would be an error with a stack. */
const waitOver = "the wait is over";

export interface TurnWaitOptions {
  readonly clock: Clock;
  readonly owners: TurnOwners;
  /** Whichever is aborted first ends the wait. */
  readonly signals: readonly (AbortSignal | undefined)[];
  /** @default 600000 */
  readonly waitMs: number | undefined;
}

/** How long a turn may wait for others, in the queue and for other processes together. */
export class TurnWait {
  readonly #options: TurnWaitOptions;
  readonly #untilMs: number;
  #pauseMs = firstPauseMs;

  constructor(options: TurnWaitOptions) {
    this.#options = options;
    this.#untilMs = options.clock.nowMs() + (options.waitMs ?? 600_000);
  }

  /** Enters the queue. @throws {ThroughlineError} ABORTED, SESSION_BUSY when it took too long or too many wait */
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
    // Rejected when the wait is over, one way or the other.
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

  /** Waits until nothing new came for a while, or the wait took too long. @throws {ThroughlineError} ABORTED */
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

  /** Waits a little longer each time, at most until the lease of the turn ends. @throws `busy` when it took too long */
  async pause(turn: OpenTurn | null, busy: unknown): Promise<void> {
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

/** An abort has one error code, whatever the reason of the signal is. */
function waitAborted({ reason }: AbortSignal): ThroughlineError {
  if (ThroughlineError.isInstance(reason) && reason.code === "ABORTED") return reason;
  return new ThroughlineError("ABORTED", "The wait for the session was aborted.", { cause: reason });
}

/** Aborts the controller with whichever signal comes first; what it gives ends that. */
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
