import type { SessionEntry } from "@throughline/core";
import {
  beginCycle,
  freshThresholds,
  readThresholds,
  rearmThreshold,
  type ThresholdState,
} from "@throughline/tokens/internal";
import type { CheckpointPhase } from "./checkpoint-steps.ts";

/** What the entry keeps of a session's checkpoints, under `checkpoints`. Plain JSON. */
export interface CheckpointState {
  readonly v: 1;
  /** The compactions that had been when the thresholds were armed. */
  readonly cycle: number;
  readonly thresholds: ThresholdState;
  /** Messages of the user, of all there were, that the last checkpoint had behind it. */
  readonly countedMessages: number;
  readonly lastId: string | null;
  /** Failures in a row. */
  readonly failures: number;
  /** No writer is asked before this time. */
  readonly notBeforeMs: number;
  /**
   * The checkpoint that is being written: its process, when the claim expires, the threshold that caused it, and the id
   * of its record. An earlier release left out the id.
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

/** The state kept in an entry, with the thresholds armed again when a compaction has begun a new cycle. */
export function readCheckpointState(entry: SessionEntry): CheckpointState {
  const cycle = entry.compactionCount ?? 0;
  const kept = entry[field] as Partial<CheckpointState> | null | undefined;
  const thresholds = readThresholds(kept?.thresholds);
  if (kept?.v !== 1 || thresholds === null) return { ...freshCheckpointState, cycle };
  const state: CheckpointState = { ...freshCheckpointState, ...kept, thresholds };
  return state.cycle === cycle ? state : { ...state, cycle, thresholds: beginCycle(thresholds) };
}

const countField = "userMessageCount";

/** All messages the user ever sent. Kept apart from the state: turns write the one, checkpoints the other. */
export function countUserMessages(entry: SessionEntry): number {
  const count = entry[countField];
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : 0;
}

/** The patch that counts further messages of the user. */
export function countPatch(entry: SessionEntry, userMessages: number): Readonly<Record<string, unknown>> {
  return { [countField]: countUserMessages(entry) + userMessages };
}

/** The patch of an entry that keeps a state. */
export function checkpointPatch(state: CheckpointState): Readonly<Record<string, unknown>> {
  return { [field]: state };
}

/** The phase a state is in at a time. A clock that was set back makes no wait and no claim longer than the longest there is. */
export function phaseAt(state: CheckpointState, nowMs: number): CheckpointPhase {
  if (isClaimed(state, nowMs)) return "running";
  return state.running !== null || waitMsAt(state, nowMs) > 0 ? "backing-off" : "idle";
}

/** Whether a process is believed to make one. */
export function isClaimed({ running }: CheckpointState, nowMs: number): boolean {
  return running !== null && running.untilMs > nowMs && running.untilMs - nowMs <= longestClaimMs;
}

/** How long no writer is asked. */
export function waitMsAt({ notBeforeMs }: CheckpointState, nowMs: number): number {
  const waitMs = notBeforeMs - nowMs;
  return waitMs > maxDelayMs ? 0 : Math.max(0, waitMs);
}

/** A process that is gone leaves its checkpoint behind: it counts as failed, and its threshold may fire again. */
export function afterExpiry(state: CheckpointState, nowMs: number): CheckpointState {
  return state.running === null || isClaimed(state, nowMs) ? state : afterFailure(state, nowMs);
}

const firstDelayMs = 60_000;
const maxDelayMs = 3_600_000;
/** A day and what an append may take: deadlines are no longer. */
const longestClaimMs = 86_460_000;

/** What is kept when no writer gave one: each wait is twice the one before. */
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

/** What is kept when the work was ended from outside: it may begin again at once. */
export function afterRelease(state: CheckpointState): CheckpointState {
  const percent = state.running?.percent ?? null;
  const thresholds = percent === null ? state.thresholds : rearmThreshold(state.thresholds, percent);
  return { ...state, running: null, thresholds };
}

/** What is kept with a checkpoint: messages are counted from it on, whatever set it off. */
export function afterCheckpoint(state: CheckpointState, lastId: string, countedMessages: number): CheckpointState {
  return { ...state, countedMessages, lastId, failures: 0, notBeforeMs: 0, running: null };
}
