import { type AppendOptions, type Clock, hasErrorCode, type RecordDraft, ThroughlineError } from "@throughline/core";
import { isUnknown } from "@throughline/core/internal";
import type { Emit } from "./session-event.ts";
import { turnMarkDraft, type TurnMark } from "./turn-mark.ts";
import { forward } from "./turn-wait.ts";
import type { StoredAppend, WindowLog } from "./window-log.ts";

export interface TurnLeaseOptions {
  readonly log: WindowLog;
  readonly clock: Clock;
  readonly turnId: string;
  readonly fence: number;
  readonly leaseMs: number;
  readonly emit: Emit | null;
  /** Aborts when the caller aborts, when the session closes, and when another turn takes over. */
  readonly controller: AbortController;
  /** Holds the caller's signal, which aborts the turn. */
  readonly signal: AbortSignal | undefined;
}

/** Holds the lease of an open turn: renews it, appends inside the fence of the turn, and closes the turn once. */
export class TurnLease {
  readonly turnId: string;
  readonly fence: number;
  readonly signal: AbortSignal;
  /** Is true once the log states how the turn ended. */
  isClosed = false;
  /** Is true when the closing append may or may not have reached the log. No second end may be written then. */
  isCloseUnknown = false;
  readonly #log: WindowLog;
  readonly #emit: Emit | null;
  readonly #controller: AbortController;
  readonly #release: () => void;
  #lostBecause: unknown = null;

  constructor({ log, clock, turnId, fence, leaseMs, emit, controller, signal }: TurnLeaseOptions) {
    this.turnId = turnId;
    this.fence = fence;
    this.signal = controller.signal;
    this.#log = log;
    this.#emit = emit;
    this.#controller = controller;
    const endForwarding = forward([signal], controller);
    const stopLease = keepLease({ log, clock, fence, leaseMs, emit, onLost: (cause) => this.#lose(cause) });
    this.#release = () => {
      stopLease();
      endForwarding();
    };
  }

  /** Holds the reason why another turn took over; null while the turn is ours. */
  get lostBecause(): unknown {
    return this.#lostBecause;
  }

  /** Appends as part of the turn. @throws the reason why the turn was lost, and what the store throws */
  async append(drafts: readonly RecordDraft[], options: AppendOptions = {}): Promise<StoredAppend> {
    if (this.#lostBecause !== null) throw this.#lostBecause;
    try {
      return await this.#log.append(drafts, { turn: { action: "within", fence: this.fence }, ...options });
    } catch (error) {
      if (hasErrorCode(error, "TURN_FENCED")) this.#lose(error);
      throw error;
    }
  }

  /** Appends the last records and the closing mark in one commit, so that no crash separates them. */
  async close(
    drafts: readonly RecordDraft[],
    mark: Omit<TurnMark, "turnId">,
    entry?: Readonly<Record<string, unknown>>,
  ): Promise<StoredAppend> {
    try {
      const end = turnMarkDraft({ turnId: this.turnId, ...mark });
      const result = await this.append([...drafts, end], {
        ...(entry === undefined ? {} : { entry }),
        turn: { action: "close", fence: this.fence },
      });
      this.isClosed = true;
      return result;
    } catch (error) {
      this.isCloseUnknown = isUnknown(error);
      throw error;
    }
  }

  /** Stops renewing the lease. The turn stays in the state that the log states. */
  release(): void {
    this.#release();
  }

  #lose(cause: unknown): void {
    if (this.#lostBecause !== null) return;
    this.#lostBecause = cause;
    this.#emit?.({ name: "lease.lost", cause });
    this.#controller.abort(cause);
  }
}

interface RenewalOptions extends Pick<TurnLeaseOptions, "log" | "clock" | "fence" | "leaseMs" | "emit"> {
  readonly onLost: (cause: unknown) => void;
}

/** The error is created once. An error with a new stack trace in each turn would be a noticeable part of its cost. */
const stopped = new ThroughlineError("ABORTED", "The turn is over.");

/** Renews the lease after each third of its length. Two renewals may then fail before it expires. */
function keepLease(options: RenewalOptions): () => void {
  const stopping = new AbortController();
  void renewAgain(options, stopping.signal);
  return () => stopping.abort(stopped);
}

async function renewAgain(options: RenewalOptions, signal: AbortSignal): Promise<void> {
  const { log, clock, fence, leaseMs, emit } = options;
  while (await slept(clock, leaseMs / 3, signal)) {
    const leaseUntilMs = clock.nowMs() + leaseMs;
    try {
      await log.renew({ action: "renew", fence, leaseUntilMs });
      emit?.({ name: "lease.renewed", leaseUntilMs });
    } catch (cause) {
      if (signal.aborted) return;
      if (hasErrorCode(cause, "TURN_FENCED", "SESSION_NOT_FOUND", "SESSION_ARCHIVED", "STORE_CLOSED")) {
        options.onLost(cause);
        return;
      }
      emit?.({ name: "lease.delayed", cause });
    }
  }
}

async function slept(clock: Clock, delayMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await clock.sleep(delayMs, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return !signal.aborted;
}
