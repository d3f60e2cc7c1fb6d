import { isFields } from "@throughline/core/internal";

/**
 * Where one threshold stands in the current cycle: not reached, reached and acted on, or reached together with a
 * higher one that was acted on instead. SPEC.md is normative.
 */
export type ThresholdPhase = "armed" | "fired" | "passed";

/** What can happen to one threshold. */
export type ThresholdEvent =
  /** A measurement lies under it. */
  | "below"
  /** A measurement reaches it, and it is the highest of those reached. */
  | "highest"
  /** A measurement reaches it and a higher one too. */
  | "overtaken"
  /** What it set off could not be done. */
  | "failed"
  /** A compaction, a reset or a new session: a new cycle begins. */
  | "new-cycle"
  /** The size is unknown: unknown window or stale measurement. */
  | "unmeasured";

interface ThresholdStep {
  readonly to: ThresholdPhase;
  readonly fires: boolean;
}

const armed: ThresholdStep = { to: "armed", fires: false };
const fired: ThresholdStep = { to: "fired", fires: false };
const passed: ThresholdStep = { to: "passed", fires: false };

/** Every phase under every event. */
export const thresholdSteps: Readonly<Record<ThresholdPhase, Readonly<Record<ThresholdEvent, ThresholdStep>>>> = {
  armed: {
    below: armed,
    highest: { to: "fired", fires: true },
    overtaken: passed,
    failed: armed,
    "new-cycle": armed,
    unmeasured: armed,
  },
  fired: {
    below: fired,
    highest: fired,
    overtaken: fired,
    failed: armed,
    "new-cycle": armed,
    unmeasured: fired,
  },
  passed: {
    below: passed,
    highest: passed,
    overtaken: passed,
    failed: passed,
    "new-cycle": armed,
    unmeasured: passed,
  },
};

/** The phases by threshold, in percent. Plain JSON, for the caller to keep with what it did about a crossing. */
export interface ThresholdState {
  readonly v: 1;
  /** A threshold that is not in it is armed. */
  readonly phases: Readonly<Record<string, ThresholdPhase>>;
}

export const freshThresholds: ThresholdState = { v: 1, phases: {} };

interface Crossing {
  readonly state: ThresholdState;
  /** The threshold to act on, in percent; null if none was crossed since the last call. */
  readonly firedPercent: number | null;
  /** Those under it that were crossed in the same step and will not fire in this cycle, highest first. */
  readonly passedPercents: readonly number[];
}

/**
 * Takes a measurement in. Each threshold fires at most once a cycle, however often the size passes it.
 *
 * @param percent unclamped, as `Gauge.percent`; null when the window is not known or the measurement is stale
 * @param thresholdPercents those in force, in any order; state of others is forgotten
 */
export function crossThresholds(
  state: ThresholdState,
  percent: number | null,
  thresholdPercents: readonly number[],
): Crossing {
  const thresholds = [...new Set(thresholdPercents)].toSorted((a, b) => b - a);
  const highest = percent === null ? undefined : thresholds.find((threshold) => threshold <= percent);
  const phases: Record<string, ThresholdPhase> = {};
  const passedPercents: number[] = [];
  let firedPercent: number | null = null;
  for (const threshold of thresholds) {
    const phase = phaseOf(state, threshold);
    const step = thresholdSteps[phase][measured(threshold, percent, highest)];
    phases[threshold] = step.to;
    if (step.fires) firedPercent = threshold;
    if (phase === "armed" && step.to === "passed") passedPercents.push(threshold);
  }
  return { state: { v: 1, phases }, firedPercent, passedPercents };
}

function measured(threshold: number, percent: number | null, highest: number | undefined): ThresholdEvent {
  if (percent === null) return "unmeasured";
  if (threshold > percent) return "below";
  return threshold === highest ? "highest" : "overtaken";
}

/** What a threshold set off could not be done: it may fire again in this cycle. */
export function rearmThreshold(state: ThresholdState, thresholdPercent: number): ThresholdState {
  const { to } = thresholdSteps[phaseOf(state, thresholdPercent)].failed;
  return { v: 1, phases: { ...state.phases, [thresholdPercent]: to } };
}

/** The state a new cycle begins with: after a compaction or a reset, and never before its result is in force. */
export function beginCycle(state: ThresholdState): ThresholdState {
  const phases = Object.entries(state.phases).map(([percent, phase]) => [
    percent,
    thresholdSteps[phase]["new-cycle"].to,
  ]);
  return { v: 1, phases: Object.fromEntries(phases) };
}

function phaseOf(state: ThresholdState, thresholdPercent: number): ThresholdPhase {
  return state.phases[thresholdPercent] ?? "armed";
}

/** Reads a stored state; null if it is invalid, so that the caller can report that it starts again. */
export function readThresholds(value: unknown): ThresholdState | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["phases"])) return null;
  const entries = Object.entries(value["phases"]);
  const isRead = entries.every(([, phase]) => typeof phase === "string" && Object.hasOwn(thresholdSteps, phase));
  return isRead ? { v: 1, phases: Object.fromEntries(entries) as ThresholdState["phases"] } : null;
}
