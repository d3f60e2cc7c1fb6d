import { type AppendOptions, type Clock, hasErrorCode, type RecordDraft } from "@throughline/core";
import { isUnknown } from "@throughline/core/internal";
import { keepLease } from "./keep-lease.ts";
import type { Emit } from "./session-event.ts";
import { turnMarkDraft, type TurnMark } from "./turn-mark.ts";
import { forward } from "./turn-wait.ts";
import type { StoredAppend, WindowLog } from "./window-log.ts";

export interface HeldTurnOptions {
  readonly log: WindowLog;
  readonly clock: Clock;
  readonly turnId: string;
  readonly fence: number;
  readonly leaseMs: number;
  readonly emit: Emit | null;
  /** Aborted by the caller, by closing the session, and when another turn takes over. */
  readonly controller: AbortController;
  /** A signal of the caller's that aborts the turn. */
  readonly signal: AbortSignal | undefined;
}

/** An open turn of this process: it renews its lease, appends inside its fence, and is closed once. */
export class HeldTurn {
  readonly turnId: string;
  readonly fence: number;
  readonly signal: AbortSignal;
  /** True once the log says how the turn ended. */
  isClosed = false;
  /** True when the log may say it, and nobody knows: another end must not be written behind it. */
  isCloseUnknown = false;
  readonly #log: WindowLog;
  readonly #emit: Emit | null;
  readonly #controller: AbortController;
  readonly #release: () => void;
  #lostBecause: unknown = null;

  constructor({ log, clock, turnId, fence, leaseMs, emit, controller, signal }: HeldTurnOptions) {
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

  /** Why the turn was lost to another; null while it is ours. */
  get lostBecause(): unknown {
    return this.#lostBecause;
  }

  /** Appends as part of the turn. @throws why the turn was lost; what the store throws */
  async append(drafts: readonly RecordDraft[], options: AppendOptions = {}): Promise<StoredAppend> {
    if (this.#lostBecause !== null) throw this.#lostBecause;
    try {
      return await this.#log.append(drafts, { turn: { action: "within", fence: this.fence }, ...options });
    } catch (error) {
      if (hasErrorCode(error, "TURN_FENCED")) this.#lose(error);
      throw error;
    }
  }

  /** Appends the last records and the mark that ends the turn, in one commit. */
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

  /** Renews the lease no more. The turn stays as the log says. */
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
