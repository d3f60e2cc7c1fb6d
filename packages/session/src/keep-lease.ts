import { hasErrorCode, ThroughlineError, type Clock } from "@throughline/core";
import type { Emit } from "./session-event.ts";
import type { WindowLog } from "./window-log.ts";

export interface LeaseOptions {
  readonly log: WindowLog;
  readonly clock: Clock;
  readonly fence: number;
  readonly leaseMs: number;
  readonly emit: Emit | null;
  readonly onLost: (cause: unknown) => void;
}

/** The error is created once. An error with a new stack trace in each turn would be a noticeable part of its cost. */
const stopped = new ThroughlineError("ABORTED", "The turn is over.");

/** Renews the lease after each third of its length. Two renewals may then fail before it expires. */
export function keepLease(options: LeaseOptions): () => void {
  const stopping = new AbortController();
  void renewAgain(options, stopping.signal);
  return () => stopping.abort(stopped);
}

async function renewAgain(options: LeaseOptions, signal: AbortSignal): Promise<void> {
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
