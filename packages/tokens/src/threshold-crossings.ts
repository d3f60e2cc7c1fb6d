import { isFields } from "@throughline/core/internal";

/**
 * States the phase of one threshold in the current cycle: not reached, fired, or passed. A threshold is passed if a
 * higher threshold fired at the same time. SPEC.md is normative.
 */
export type ThresholdPhase = "armed" | "fired" | "passed";

export type ThresholdEvent =
  /** The measurement lies under the threshold. */
  | "below"
  /** The measurement reaches the threshold and no higher one. */
  | "highest"
  /** The measurement reaches the threshold and a higher one too. */
  | "overtaken"
  /** The action that the threshold triggered failed. */
  | "failed"
  /** A compaction, a reset or a new session begins a new cycle, in which every threshold may fire again. */
  | "new-cycle"
  /** The size is unknown, because the window is unknown or the measurement is stale. */
  | "unmeasured";

interface ThresholdStep {
  readonly to: ThresholdPhase;
  readonly fires: boolean;
}

const armed: ThresholdStep = { to: "armed", fires: false };
const fired: ThresholdStep = { to: "fired", fires: false };
const passed: ThresholdStep = { to: "passed", fires: false };

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

/**
 * Holds the phases by threshold in percent. It is plain JSON that the caller stores together with its reaction to a
 * crossing.
 */
export interface ThresholdState {
  readonly v: 1;
  /** A threshold that is missing here is armed. */
  readonly phases: Readonly<Record<string, ThresholdPhase>>;
}

export const freshThresholds: ThresholdState = { v: 1, phases: {} };

interface Crossing {
  readonly state: ThresholdState;
  /** Names the threshold to act on, in percent. Null if the size crossed none since the last call. */
  readonly firedPercent: number | null;
  /** Lists lower thresholds that the same step crossed, highest first. They do not fire in this cycle. */
  readonly passedPercents: readonly number[];
}

/**
 * Applies a measurement to all thresholds. Each threshold fires at most once a cycle, even if the size passes it
 * repeatedly.
 *
 * @param percent unclamped, like `Gauge.percent`; null when the window is unknown or the measurement is stale
 * @param thresholdPercents all thresholds in force, in any order; the state of any other threshold is dropped
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

/** Arms a threshold again after its action failed, so that it may fire again in this cycle. */
export function rearmThreshold(state: ThresholdState, thresholdPercent: number): ThresholdState {
  const { to } = thresholdSteps[phaseOf(state, thresholdPercent)].failed;
  return { v: 1, phases: { ...state.phases, [thresholdPercent]: to } };
}

/** Returns the state for a new cycle. Call it after a compaction or a reset, once the result is in force. */
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

/** Reads a stored state. Returns null if the value is invalid, so that the caller can report a fresh start. */
export function readThresholds(value: unknown): ThresholdState | null {
  if (!isFields(value) || value["v"] !== 1 || !isFields(value["phases"])) return null;
  const entries = Object.entries(value["phases"]);
  const isRead = entries.every(([, phase]) => typeof phase === "string" && Object.hasOwn(thresholdSteps, phase));
  return isRead ? { v: 1, phases: Object.fromEntries(entries) as ThresholdState["phases"] } : null;
}
