import { ThroughlineError, type OpenTurn } from "@throughline/core";
import type { RunTurnOptions } from "./session.ts";
import type { TurnHost } from "./turn-host.ts";
import type { QueueHolder, TurnQueue } from "./turn-queue.ts";

const firstPauseMs = 20;
const longestPauseMs = 500;
/** Made once: a reason of its own each time would be an error with a stack. */
const waitOver = "the wait is over";

/** How long a turn may wait for others, in the queue and for other processes together. */
export class TurnWait {
  readonly #handle: TurnHost;
  readonly #options: RunTurnOptions;
  readonly #untilMs: number;
  #pauseMs = firstPauseMs;

  constructor(handle: TurnHost, options: RunTurnOptions) {
    this.#handle = handle;
    this.#options = options;
    this.#untilMs = handle.shared.clock.nowMs() + (options.waitMs ?? 600_000);
  }

  /** Enters the queue. @throws {ThroughlineError} ABORTED, SESSION_BUSY when it took too long */
  async enter(queue: TurnQueue, own: QueueHolder): Promise<() => void> {
    const { holder } = queue;
    if (holder === null) return queue.enter(own, undefined);
    const { clock, owners } = this.#handle.shared;
    const controller = new AbortController();
    const end = forward([this.#options.signal, this.#handle.closing], controller);
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
      throw isLate ? busyHere(holder, owners.self) : error;
    } finally {
      end();
      controller.abort(waitOver);
    }
  }

  /** Waits a little longer each time, at most until the lease of the turn ends. @throws `busy` when it took too long */
  async pause(turn: OpenTurn | null, busy: unknown): Promise<void> {
    const { clock } = this.#handle.shared;
    const nowMs = clock.nowMs();
    if (nowMs >= this.#untilMs) throw busy;
    const leaseLeftMs = turn === null ? longestPauseMs : Math.max(1, turn.leaseUntilMs - nowMs + 1);
    const pauseMs = Math.min(this.#pauseMs, leaseLeftMs, this.#untilMs - nowMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
    const controller = new AbortController();
    const end = forward([this.#options.signal, this.#handle.closing], controller);
    try {
      await clock.sleep(pauseMs, controller.signal);
    } finally {
      end();
    }
  }
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
  return new ThroughlineError("SESSION_BUSY", `Turn ${turnId} of this process is open.`, {
    outcome: "not-applied",
    details: { turnId, owner, sinceMs },
  });
}
