import { readCheckpointState } from "@throughline/checkpoint/internal";
import type { SessionRef, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";

/** Tracks work beside the turns, so that a program does not exit in the middle of it. */
export interface BackgroundWork {
  see(event: WholeTurnEvent): void;
  /** Waits until the steps after a turn have started and a running checkpoint is done, at most `waitMs`. */
  settle(store: SessionStore, options: SettleOptions): Promise<void>;
}

export interface SettleOptions {
  readonly waitMs: number;
  readonly signal: AbortSignal;
  readonly onWaiting: () => void;
}

const pollMs = 50;
/**
 * If another process claimed the checkpoint first, no event follows. After this time the session entry shows whether a
 * checkpoint is running.
 */
const claimedWithinMs = 1000;

export function createBackgroundWork(): BackgroundWork {
  let isStepDue = false;
  let making: { readonly ref: SessionRef; readonly sinceMs: number } | null = null;
  const isClaimed = async (store: SessionStore, ref: SessionRef): Promise<boolean> => {
    const state = await store.load(ref);
    const { running } = state === null ? { running: null } : readCheckpointState(state.entry);
    return running !== null && running.untilMs > systemClock.nowMs();
  };
  return {
    see: (event) => {
      // No background step follows a turn that failed or was denied.
      if (event.name === "turn.closed") isStepDue = event.outcome !== "failed" && event.outcome !== "denied";
      else if (event.name === "step.finished" || event.name === "step.failed") {
        if (event.step === "checkpoint") isStepDue = false;
      } else if (event.name === "checkpoint.started") making = { ref: event.ref, sinceMs: systemClock.nowMs() };
      else if (/^checkpoint\.(written|dropped|failed)$/.test(event.name)) making = null;
    },
    settle: async (store, { waitMs, signal, onWaiting }) => {
      const untilMs = systemClock.nowMs() + waitMs;
      let hasSaid = false;
      while ((isStepDue || making !== null) && systemClock.nowMs() < untilMs && !signal.aborted) {
        const started = making;
        if (started !== null) {
          if (!hasSaid) onWaiting();
          hasSaid = true;
          const isLate = systemClock.nowMs() - started.sinceMs > claimedWithinMs;
          if (isLate && !(await isClaimed(store, started.ref))) return;
        }
        await systemClock.sleep(pollMs, signal).catch(() => {});
      }
    },
  };
}
