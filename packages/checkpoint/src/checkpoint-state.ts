import type { SessionEntry } from "@throughline/core";
import {
  beginCycle,
  freshThresholds,
  readThresholds,
  rearmThreshold,
  type ThresholdState,
} from "@throughline/tokens/internal";
import type { CheckpointPhase } from "./checkpoint-steps.ts";

/** Holds the checkpoint state of a session. The session entry stores it as JSON under `checkpoints`. */
export interface CheckpointState {
  readonly v: 1;
  /** Counts the compactions up to the time when the thresholds were last armed. */
  readonly cycle: number;
  readonly thresholds: ThresholdState;
  /** States the user message count at the last checkpoint. */
  readonly countedMessages: number;
  readonly lastId: string | null;
  /** Counts consecutive failures. */
  readonly failures: number;
  /** States the time before which no writer is asked, in UTC milliseconds. */
  readonly notBeforeMs: number;
  /**
   * Holds the current claim: the process, the expiry time, the threshold that fired and the record id. Claims of an
   * earlier release have no record id.
   */
  readonly running: {
    readonly owner: string;
    readonly untilMs: number;
    readonly percent: number | null;
    readonly recordId?: string;
  } | null;
}

const field = "checkpoints";

export const freshCheckpointState: CheckpointState = {
  v: 1,
  cycle: 0,
  thresholds: freshThresholds,
  countedMessages: 0,
  lastId: null,
  failures: 0,
  notBeforeMs: 0,
  running: null,
};

/**
 * Reads the state of an entry. A compaction since the last read starts a new cycle, which arms the thresholds again.
 */
export function readCheckpointState(entry: SessionEntry): CheckpointState {
  const cycle = entry.compactionCount ?? 0;
  const kept = entry[field] as Partial<CheckpointState> | null | undefined;
  const thresholds = readThresholds(kept?.thresholds);
  if (kept?.v !== 1 || thresholds === null) return { ...freshCheckpointState, cycle };
  const state: CheckpointState = { ...freshCheckpointState, ...kept, thresholds };
  return state.cycle === cycle ? state : { ...state, cycle, thresholds: beginCycle(thresholds) };
}

const countField = "userMessageCount";

/**
 * Returns the number of user messages so far. A separate field holds it, because turns write this count and checkpoints
 * write the state.
 */
export function countUserMessages(entry: SessionEntry): number {
  const count = entry[countField];
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

export function countPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>> {
  return { [countField]: countUserMessages(entry) + userMessages };
}

export function checkpointPatch(state: CheckpointState): Readonly<Record<string, unknown>> {
  return { [field]: state };
}

/**
 * Returns the phase at a time. Waits and claims are capped at their maximum, so that a clock that was set back cannot
 * extend them.
 */
export function phaseAt(state: CheckpointState, nowMs: number): CheckpointPhase {
  if (isClaimed(state, nowMs)) return "running";
  return state.running !== null || waitMsAt(state, nowMs) > 0 ? "backing-off" : "idle";
}

export function isClaimed({ running }: CheckpointState, nowMs: number): boolean {
  return running !== null && running.untilMs > nowMs && running.untilMs - nowMs <= longestClaimMs;
}

/** Returns how long no writer is asked, in milliseconds. */
export function waitMsAt({ notBeforeMs }: CheckpointState, nowMs: number): number {
  const waitMs = notBeforeMs - nowMs;
  return waitMs > maxDelayMs ? 0 : Math.max(0, waitMs);
}

/** Treats an expired claim as a failure, because its process is gone. Its threshold may fire again. */
export function afterExpiry(state: CheckpointState, nowMs: number): CheckpointState {
  return state.running === null || isClaimed(state, nowMs) ? state : afterFailure(state, nowMs);
}

const firstDelayMs = 60_000;
const maxDelayMs = 3_600_000;
/** Equals the maximum deadline of a day plus the grace for the append. */
const longestClaimMs = 86_460_000;

/** Returns the state after a failure. Each wait is twice the previous one, up to an hour. */
export function afterFailure(state: CheckpointState, nowMs: number): CheckpointState {
  const failures = state.failures + 1;
  const percent = state.running?.percent ?? null;
  return {
    ...state,
    failures,
    notBeforeMs: nowMs + Math.min(firstDelayMs * 2 ** (failures - 1), maxDelayMs),
    running: null,
    thresholds: percent === null ? state.thresholds : rearmThreshold(state.thresholds, percent),
  };
}

/** Returns the state after an abort. It is no failure, so the work may start again at once. */
export function afterRelease(state: CheckpointState): CheckpointState {
  const percent = state.running?.percent ?? null;
  const thresholds = percent === null ? state.thresholds : rearmThreshold(state.thresholds, percent);
  return { ...state, running: null, thresholds };
}

/** Returns the state after a checkpoint. The user messages count from here on, whichever trigger fired. */
export function afterCheckpoint(state: CheckpointState, lastId: string, countedMessages: number): CheckpointState {
  return { ...state, countedMessages, lastId, failures: 0, notBeforeMs: 0, running: null };
}
