import type { SessionEntry } from "@throughline/core";
import { beginCycle, freshThresholds, readThresholds, type ThresholdState } from "@throughline/tokens/internal";
import { flushSteps, type FlushPhase } from "./flush-steps.ts";

/** What the entry keeps of a session's flushes, under `memoryFlush`. Plain JSON. */
export interface FlushState {
  readonly v: 1;
  /** The compactions that had been when the cycle began. */
  readonly cycle: number;
  /** Whether the agent was asked in this cycle, and whether it has answered. */
  readonly phase: FlushPhase;
  /** By the percent each threshold was configured with, so that another model's window does not fire it again. */
  readonly thresholds: ThresholdState;
  /** The threshold that was asked last in this cycle; null when none was. */
  readonly askedPercent: number | null;
  /** Whether the agent wrote a memory file when it was asked last; null before the first answer. */
  readonly flushActioned: boolean | null;
  /** Whether it wrote any file then. */
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

/** The state kept in an entry; after a compaction that of a new cycle, in which what was observed last is still known. */
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

/** The patch of an entry that keeps a state. With a time also OpenClaw's fields for when and in which cycle it was. */
export function flushPatch(state: FlushState, firedAtMs: number | null = null): Readonly<Record<string, unknown>> {
  const times = firedAtMs === null ? {} : { memoryFlushAt: firedAtMs, memoryFlushCompactionCount: state.cycle };
  return { [field]: state, ...times };
}
