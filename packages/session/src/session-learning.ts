import type { SessionEntry } from "@throughline/core";
import { type LearnedLimits, nothingLearned, readLimits } from "@throughline/guard/internal";
import {
  addSpend,
  type Calibration,
  costOf,
  freshThresholds,
  type ModelName,
  readCalibration,
  readThresholds,
  type ThresholdState,
} from "@throughline/tokens/internal";
import { type CallUsage, nothingSpent, readSpend } from "@throughline/core/internal";
import { emptyCalibration, type Spend } from "@throughline/tokens";

/**
 * Holds the calibration, the limits and the usage of a session. They are stored in the session entry under
 * `throughline`, so that a restart keeps them.
 */
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

/** Values that this process stored are cached, so that a turn need not parse them again. */
const known = new WeakMap<object, SessionLearning>();

/** A value that cannot be read was not written by Throughline. It is replaced by the defaults. */
export function readLearning(entry: SessionEntry): SessionLearning {
  const kept = entry["throughline"];
  if (typeof kept !== "object" || kept === null) return nothing;
  const learning = known.get(kept) ?? readKept(kept, readSpend(entry));
  known.set(kept, learning);
  return learning;
}

function readKept(kept: object, spend: Spend | null): SessionLearning {
  const { calibration, limits, thresholds } = kept as Readonly<Record<string, unknown>>;
  return {
    calibration: readCalibration(calibration) ?? emptyCalibration,
    limits: readLimits(limits) ?? nothingLearned,
    thresholds: readThresholds(thresholds) ?? freshThresholds,
    spend: spend ?? nothingSpent,
  };
}

/** Leaves out empty parts, so that the entry stays small. */
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
