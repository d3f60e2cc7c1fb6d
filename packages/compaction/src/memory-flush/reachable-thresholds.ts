import {
  defaultThresholds,
  flushSettingsTable,
  type FlushDelivery,
  type MemoryFlushSettings,
} from "./flush-settings.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** Holds a threshold that is in force for a window. */
export interface ReachableThreshold {
  /** Holds the configured percent, which identifies the threshold in the state. */
  readonly askedPercent: number;
  /** Holds the percent at which the threshold fires. */
  readonly percent: number;
  /** Holds the configured text, with its placeholders. */
  readonly prompt: string;
  /** States how the prompt reaches the agent. */
  readonly injectAs: FlushDelivery;
}

/** Describes a threshold that was moved or dropped, because it could not fire where it was configured. */
export interface ThresholdRepair {
  /** Holds the configured percent of the window. */
  readonly askedPercent: number;
  /** Holds the percent in force; null when the threshold was dropped. */
  readonly usedPercent: number | null;
  /** States why the threshold could not fire where it was configured. */
  readonly reason:
    | "not below the compaction point"
    | "too close to the one above it"
    | "no room below the ones above it";
}

/** Holds the size of a window and the point at which compaction is due. */
export interface WindowSizes {
  /** Holds the size of the context window in tokens; null means that no threshold can fire. */
  readonly windowTokens: number | null;
  /** Holds the number of tokens at which compaction is due; null means the end of the window. */
  readonly compactAtTokens: number | null;
}

const { number, orNull, required } = optionKinds;

export const windowSizesTable: OptionTable<WindowSizes> = {
  windowTokens: required(orNull(number())),
  compactAtTokens: required(orNull(number())),
};

/** Holds the thresholds that can fire in a window, and how they differ from the configured ones. */
export interface ReachableThresholds {
  /** Lists the thresholds, lowest first; empty when the window is unknown. */
  readonly thresholds: readonly ReachableThreshold[];
  /** Lists the thresholds that were moved or dropped, highest percent first. */
  readonly repairs: readonly ThresholdRepair[];
}

/** The exchange of a flush needs this many tokens before the compaction. */
const mostMarginTokens = 4000;
/** In a small window, the exchange gets this share of the window. */
const marginShare = 0.05;
const leastDistancePercent = 2;
/** Below this percent, a threshold would fire before the conversation has content. */
const leastPercent = 2;

/**
 * Returns thresholds that can fire. Each lies 4,000 tokens or a twentieth of the window below the compaction point, and
 * two percent below the next higher threshold. A threshold above its limit is moved down, or dropped when there is no
 * room left. `repairs` lists both.
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
