import type { SessionEntry } from "@throughline/core";
import { type LearnedLimits, nothingLearned, readLimits } from "@throughline/guard/internal";
import {
  addSpend,
  type Calibration,
  costOf,
  freshThresholds,
  type ModelName,
  nothingSpent,
  readCalibration,
  readThresholds,
  type Spend,
  type ThresholdState,
} from "@throughline/tokens/internal";
import { type CallUsage } from "@throughline/core/internal";
import { emptyCalibration } from "@throughline/tokens";

/** What a session has learned and spent: kept in its entry, under `throughline`, so that a restart forgets nothing. */
export interface SessionLearning {
  readonly calibration: Calibration;
  readonly limits: LearnedLimits;
  readonly thresholds: ThresholdState;
  readonly spend: Spend;
}

const nothing: SessionLearning = {
  calibration: emptyCalibration,
  limits: nothingLearned,
  thresholds: freshThresholds,
  spend: nothingSpent,
};

/** What was kept by this process need not be read again with every turn. */
const known = new WeakMap<object, SessionLearning>();

/** A file that cannot be read was not written by us, and is started again. */
export function readLearning(entry: SessionEntry): SessionLearning {
  const kept = entry["throughline"];
  if (typeof kept !== "object" || kept === null) return nothing;
  const learning = known.get(kept) ?? readKept(kept);
  known.set(kept, learning);
  return learning;
}

function readKept(kept: object): SessionLearning {
  const { calibration, limits, thresholds, spend } = kept as Readonly<Record<string, unknown>>;
  return {
    calibration: readCalibration(calibration) ?? emptyCalibration,
    limits: readLimits(limits) ?? nothingLearned,
    thresholds: readThresholds(thresholds) ?? freshThresholds,
    spend: readSpend(spend),
  };
}

/** As the entry keeps it: without what is empty. */
export function keptLearning(learning: SessionLearning): object {
  const { calibration, limits, thresholds, spend } = learning;
  const kept = {
    v: 1,
    spend,
    ...(calibration === emptyCalibration ? {} : { calibration }),
    ...(limits === nothingLearned ? {} : { limits }),
    ...(thresholds === freshThresholds ? {} : { thresholds }),
  };
  known.set(kept, learning);
  return kept;
}

export function spendMore(spend: Spend, usage: CallUsage, model: ModelName): Spend {
  return addSpend(spend, usage, costOf(usage, model));
}

function readSpend(value: unknown): Spend {
  if (typeof value !== "object" || value === null) return nothingSpent;
  const fields = value as Readonly<Record<string, unknown>>;
  const isNumber = (field: string): boolean => typeof fields[field] === "number" && Number.isFinite(fields[field]);
  const counts = ["calls", "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning"];
  const isRead = counts.every(isNumber) && (fields["costUsd"] === null || isNumber("costUsd"));
  return isRead ? (value as Spend) : nothingSpent;
}
