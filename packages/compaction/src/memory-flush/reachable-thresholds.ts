import {
  defaultThresholds,
  flushSettingsTable,
  type FlushDelivery,
  type MemoryFlushSettings,
} from "./flush-settings.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** A threshold in force for a window. */
export interface ReachableThreshold {
  /** As it was configured: what it is known by in the state. */
  readonly askedPercent: number;
  /** Where it fires. */
  readonly percent: number;
  /** The text as it was configured, with its placeholders. */
  readonly prompt: string;
  /** How the prompt reaches the agent. */
  readonly injectAs: FlushDelivery;
}

/** What had to be done to a threshold so that it can fire, or that it cannot. */
export interface ThresholdRepair {
  /** The percent of the window that was configured. */
  readonly askedPercent: number;
  /** Null: it was dropped. */
  readonly usedPercent: number | null;
  /** Why the threshold could not fire where it was configured. */
  readonly reason:
    | "not below the compaction point"
    | "too close to the one above it"
    | "no room below the ones above it";
}

/** Where a window ends, and where compaction is due; null where it is not known. */
export interface WindowSizes {
  /** The size of the context window in tokens; null means that no threshold can fire. */
  readonly windowTokens: number | null;
  /** The number of tokens at which compaction is due; null means the end of the window. */
  readonly compactAtTokens: number | null;
}

const { number, orNull, required } = optionKinds;

/** The kinds of the sizes of a window. */
export const windowSizesTable: OptionTable<WindowSizes> = {
  windowTokens: required(orNull(number())),
  compactAtTokens: required(orNull(number())),
};

/** The thresholds that can fire in a window, and how they differ from the configured ones. */
export interface ReachableThresholds {
  /** Lowest first; empty when the window is not known. */
  readonly thresholds: readonly ReachableThreshold[];
  /** What was done to the others, highest percent first. */
  readonly repairs: readonly ThresholdRepair[];
}

/** So much room a flush has before the compaction, */
const mostMarginTokens = 4000;
/** or such a share of a small window. */
const marginShare = 0.05;
const leastDistancePercent = 2;
/** Nearer to nothing no conversation has begun. */
const leastPercent = 2;

/**
 * Returns thresholds that can fire. Each lies 4,000 tokens or a twentieth of the window below the compaction point, and
 * two percent below the next higher one. One that would not is moved down; one there is no room for is dropped.
 * `repairs` has both.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a setting or a size that is not known, has another type, or is out of
 * range
 */
export function reachableThresholds(settings: MemoryFlushSettings, sizes: WindowSizes): ReachableThresholds {
  assertKnownOptions<MemoryFlushSettings>("reachableThresholds", settings, flushSettingsTable, "settings");
  assertKnownOptions<WindowSizes>("reachableThresholds", sizes, windowSizesTable, "sizes");
  const { windowTokens, compactAtTokens } = sizes;
  if (settings.enabled === false || windowTokens === null || windowTokens <= 0) return { thresholds: [], repairs: [] };
  const margin = Math.min(mostMarginTokens, windowTokens * marginShare);
  const pointTokens = Math.min(compactAtTokens ?? windowTokens, windowTokens);
  const ceiling = floorTenth(((pointTokens - margin) * 100) / windowTokens);
  const thresholds: ReachableThreshold[] = [];
  const repairs: ThresholdRepair[] = [];
  let above = Infinity;
  const wanted = (settings.thresholds ?? defaultThresholds).toSorted((one, other) => other.percent - one.percent);
  for (const { percent: askedPercent, prompt, injectAs = "marked" } of wanted) {
    const percent = Math.min(askedPercent, ceiling, floorTenth(above - leastDistancePercent));
    if (percent < leastPercent) {
      repairs.push({ askedPercent, usedPercent: null, reason: "no room below the ones above it" });
      continue;
    }
    if (percent < askedPercent) {
      const reason = percent === ceiling ? "not below the compaction point" : "too close to the one above it";
      repairs.push({ askedPercent, usedPercent: percent, reason });
    }
    thresholds.unshift({ askedPercent, percent, prompt, injectAs });
    above = percent;
  }
  return { thresholds, repairs };
}

function floorTenth(percent: number): number {
  return Number.isFinite(percent) ? Math.floor(percent * 10) / 10 : percent;
}
