import type { SessionEntry } from "@throughline/core";
import { beginCycle, freshThresholds, readThresholds, type ThresholdState } from "@throughline/tokens/internal";
import { flushSteps, type FlushPhase } from "./flush-steps.ts";

/** Holds the state of a session's flushes, which the entry keeps under `memoryFlush`. It is plain JSON. */
export interface FlushState {
  readonly v: 1;
  /** Holds the number of compactions at the start of the cycle. */
  readonly cycle: number;
  /** States whether the agent was asked in this cycle, and whether it answered. */
  readonly phase: FlushPhase;
  /** Holds the phases by the configured percent of each threshold, so that a change of the window fires none again. */
  readonly thresholds: ThresholdState;
  /** Holds the percent of the threshold that fired last as a message in this cycle; null when none did. */
  readonly askedPercent: number | null;
  /** States whether the agent wrote a memory file when it was asked last; null before the first answer. */
  readonly flushActioned: boolean | null;
  /** States whether the agent wrote any file when it was asked last; null before the first answer. */
  readonly flushWrote: boolean | null;
}

const field = "memoryFlush";

const fresh: FlushState = {
  v: 1,
  cycle: 0,
  phase: "quiet",
  thresholds: freshThresholds,
  askedPercent: null,
  flushActioned: null,
  flushWrote: null,
};

/**
 * Reads the state from an entry. After a compaction it returns the state of a new cycle, which keeps the last
 * observation.
 */
export function readFlushState(entry: SessionEntry): FlushState {
  const cycle = entry.compactionCount ?? 0;
  const kept = entry[field] as Partial<FlushState> | null | undefined;
  const thresholds = readThresholds(kept?.thresholds);
  const isRead =
    kept?.v === 1 && thresholds !== null && typeof kept.phase === "string" && Object.hasOwn(flushSteps, kept.phase);
  if (!isRead) return { ...fresh, cycle };
  const state: FlushState = { ...fresh, ...kept, thresholds };
  if (state.cycle === cycle) return state;
  const phase = flushSteps[state.phase].compacted.to;
  return { ...state, cycle, phase, askedPercent: null, thresholds: beginCycle(thresholds) };
}

/**
 * Builds the patch of an entry that stores a state. With a time, it also sets OpenClaw's fields for the time and cycle
 * of the flush.
 */
export function flushPatch(state: FlushState, firedAtMs: number | null = null): Readonly<Record<string, unknown>> {
  const times = firedAtMs === null ? {} : { memoryFlushAt: firedAtMs, memoryFlushCompactionCount: state.cycle };
  return { [field]: state, ...times };
}
