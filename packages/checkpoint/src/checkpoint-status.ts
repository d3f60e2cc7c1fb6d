import type { SessionEntry } from "@throughline/core";
import { countUserMessages, isClaimed, phaseAt, readCheckpointState, waitMsAt } from "./checkpoint-state.ts";
import type { CheckpointPhase } from "./checkpoint-steps.ts";

/** Shows the checkpoint state of a session to people. */
export interface CheckpointStatus {
  /** States the phase: `running` while a checkpoint is made, `backing-off` after a failure, else `idle`. */
  readonly phase: CheckpointPhase;
  /** Names the newest checkpoint. Null when the session has none. */
  readonly lastId: string | null;
  /** Counts all user messages of the session. */
  readonly userMessages: number;
  /** Counts the user messages since the last checkpoint. */
  readonly userMessagesSince: number;
  /** Counts consecutive failures. */
  readonly failures: number;
  /** States the milliseconds until a writer is asked again. Null when there is no wait. */
  readonly retryInMs: number | null;
  /** Holds the current claim. Null when no process holds one. */
  readonly running: {
    /** Names the process that makes the checkpoint. */
    readonly owner: string;
    /** States the time when the claim expires, in UTC milliseconds. */
    readonly untilMs: number;
  } | null;
}

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
