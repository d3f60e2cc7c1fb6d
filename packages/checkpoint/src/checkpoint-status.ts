import type { SessionEntry } from "@throughline/core";
import { countUserMessages, isClaimed, phaseAt, readCheckpointState, waitMsAt } from "./checkpoint-state.ts";
import type { CheckpointPhase } from "./checkpoint-steps.ts";

/** For people: where the checkpoints of a session stand. */
export interface CheckpointStatus {
  /** `running`: one is being made. `backing-off`: a failure is waited out. `idle`: neither. */
  readonly phase: CheckpointPhase;
  /** The newest; null when there is none since the session began. */
  readonly lastId: string | null;
  /** Messages of the user, of all there were, and of those since the last checkpoint. */
  readonly userMessages: number;
  /** Messages of the user since the last checkpoint. */
  readonly userMessagesSince: number;
  /** Failures in a row. */
  readonly failures: number;
  /** Until a writer is asked again; null when nothing is waited for. */
  readonly retryInMs: number | null;
  /** Who is making one, and until when that is believed; null when nobody is. */
  readonly running: {
    /** The process that is making it. */
    readonly owner: string;
    /** Until when it is believed, in milliseconds since 1970. */
    readonly untilMs: number;
  } | null;
}

/** Reads it from an entry. */
export function checkpointStatus(entry: SessionEntry, nowMs: number): CheckpointStatus {
  const state = readCheckpointState(entry);
  const { lastId, failures, countedMessages, running } = state;
  const waitMs = waitMsAt(state, nowMs);
  const userMessages = countUserMessages(entry);
  return {
    phase: phaseAt(state, nowMs),
    lastId,
    userMessages,
    userMessagesSince: Math.max(0, userMessages - countedMessages),
    failures,
    retryInMs: waitMs > 0 ? waitMs : null,
    running: running === null || !isClaimed(state, nowMs) ? null : { owner: running.owner, untilMs: running.untilMs },
  };
}
