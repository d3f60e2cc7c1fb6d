import { readCheckpointState } from "@throughline/checkpoint/internal";
import type { SessionRef, SessionStore } from "@throughline/core";
import { sessionRefText, systemClock } from "@throughline/core/internal";
import type { WholeTurnEvent } from "@throughline/session/whole-turn";

/** Tracks work beside the turns, so that a program does not exit in the middle of it. */
export interface BackgroundWork {
  see(event: WholeTurnEvent): void;
  /** Waits until the steps after a turn have started and a running checkpoint is done, at most `waitMs`. */
  settle(store: SessionStore, options: SettleOptions): Promise<void>;
}

export interface SettleOptions {
  readonly waitMs: number;
  readonly signal?: AbortSignal;
  readonly onWaiting?: () => void;
}

/** Describes the work in one session. */
interface SessionWork {
  readonly ref: SessionRef;
  /** True until the background steps of the last turn have started their work. */
  readonly isStepDue: boolean;
  /** States when its checkpoint was started; null while none is written. */
  readonly sinceMs: number | null;
}

const pollMs = 50;
/**
 * If another process claimed the checkpoint first, no event follows. After this time the session entry shows whether a
 * checkpoint is running.
 */
const claimedWithinMs = 1000;

export function createBackgroundWork(): BackgroundWork {
  const pending = new Map<string, SessionWork>();
  const change = (ref: SessionRef, changes: Partial<SessionWork>): void => {
    const name = sessionRefText(ref);
    const work = { ref, isStepDue: false, sinceMs: null, ...pending.get(name), ...changes };
    if (work.isStepDue || work.sinceMs !== null) pending.set(name, work);
    else pending.delete(name);
  };
  return {
    see: (event) => change(event.ref, changesOf(event)),
    settle: async (store, { waitMs, signal, onWaiting }) => {
      const untilMs = systemClock.nowMs() + waitMs;
      let hasReported = false;
      while (pending.size > 0 && systemClock.nowMs() < untilMs && signal?.aborted !== true) {
        for (const { ref, sinceMs } of pending.values()) {
          if (sinceMs === null) continue;
          if (!hasReported) onWaiting?.();
          hasReported = true;
          const isLate = systemClock.nowMs() - sinceMs > claimedWithinMs;
          if (isLate && !(await isClaimed(store, ref))) change(ref, { isStepDue: false, sinceMs: null });
        }
        if (pending.size > 0) await systemClock.sleep(pollMs, signal).catch(() => {});
      }
    },
  };
}

function changesOf(event: WholeTurnEvent): Partial<SessionWork> {
  switch (event.name) {
    case "turn.closed":
      // No background step follows a turn that failed or was denied.
      return { isStepDue: event.outcome !== "failed" && event.outcome !== "denied" };
    case "step.finished":
    case "step.failed":
      return event.step === "checkpoint" ? { isStepDue: false } : {};
    case "checkpoint.started":
      return { sinceMs: systemClock.nowMs() };
    case "checkpoint.written":
    case "checkpoint.dropped":
    case "checkpoint.failed":
      return { sinceMs: null };
    default:
      return {};
  }
}

async function isClaimed(store: SessionStore, ref: SessionRef): Promise<boolean> {
  const state = await store.load(ref);
  const { running } = state === null ? { running: null } : readCheckpointState(state.entry);
  return running !== null && running.untilMs > systemClock.nowMs();
}
