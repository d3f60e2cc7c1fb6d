import { ThroughlineError, type OpenTurn } from "@throughline/core";
import type { RunTurnOptions } from "./session.ts";
import type { TurnHost } from "./turn-host.ts";

const firstPauseMs = 20;
const longestPauseMs = 500;

/** How long a turn may wait for others, in the queue and for other processes together. */
export class TurnWait {
  readonly #handle: TurnHost;
  readonly #options: RunTurnOptions;
  readonly #untilMs: number;
  readonly #over = new AbortController();
  #pauseMs = firstPauseMs;

  constructor(handle: TurnHost, options: RunTurnOptions) {
    this.#handle = handle;
    this.#options = options;
    this.#untilMs = handle.shared.clock.nowMs() + (options.waitMs ?? 600_000);
  }

  /** @throws {ThroughlineError} ABORTED, SESSION_BUSY when it took too long */
  async bounded<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const { shared, closing, ref } = this.#handle;
    const holder = shared.queueOf(ref).holder;
    const controller = new AbortController();
    const end = forward([this.#options.signal, closing, this.#over.signal], controller);
    let isLate = false;
    if (holder !== null)
      void shared.clock.sleep(this.#untilMs - shared.clock.nowMs(), controller.signal).then(
        () => {
          isLate = true;
          controller.abort();
        },
        () => null,
      );
    try {
      return await work(controller.signal);
    } catch (error) {
      throw isLate && holder !== null ? busyHere(holder, shared.owners.self) : error;
    } finally {
      end();
      if (holder !== null) this.#over.abort();
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

  end(): void {
    this.#over.abort();
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
