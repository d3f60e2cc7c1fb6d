import { crossThresholds } from "@throughline/tokens/internal";
import type { CheckpointState } from "./checkpoint-state.ts";
import { optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** When a checkpoint is due, and how long it may take. */
export interface CheckpointSettings {
  /** False: no writer is ever asked. @default true */
  readonly enabled?: boolean;
  /** Of the window. @default [25, 50, 75] */
  readonly tokenThresholdPercents?: readonly number[];
  /** After this number of messages of the user. @default 10 */
  readonly turnThreshold?: number;
  /** None below this number of tokens. @default 5000 */
  readonly minTokensForGen?: number;
}

const percentKind: OptionKind = {
  expected: "a number above 0 and below 100",
  accepts: (value) => typeof value === "number" && value > 0 && value < 100,
};

/** The kinds of the settings of checkpoints. */
export const checkpointSettingsTable: OptionTable<CheckpointSettings> = {
  enabled: optionKinds.flag,
  tokenThresholdPercents: optionKinds.listOf(percentKind),
  turnThreshold: optionKinds.number({ min: 0, max: 100_000 }),
  minTokensForGen: optionKinds.number({ min: 0, max: 10_000_000 }),
};

/** How full the window is, and what happened since the last checkpoint. */
export interface CheckpointMeasurement {
  /** Of the window as it is now; null when it is not known or stale. */
  readonly tokens: number | null;
  /** Null and 0 stand for unknown: then only messages are counted. */
  readonly windowTokens: number | null;
  /** Messages of the user since the last checkpoint. */
  readonly userMessages: number;
  /** Whether the caller's topic detection says so. @default false */
  readonly topicChanged?: boolean;
}

export interface CheckpointTrigger {
  /** With the thresholds as they stand after the measurement. */
  readonly state: CheckpointState;
  /** Null: none is due. */
  readonly due: "tokens" | "messages" | "topic" | null;
  /** The threshold that was crossed, the highest of several; null for other triggers. */
  readonly percent: number | null;
}

/**
 * Whether a checkpoint is due: at a share of the window, after a number of messages, or when a hook says so, whichever
 * comes first. Pure. Under the floor of tokens nothing is crossed, so that a threshold below it fires when it is reached.
 */
export function checkpointTrigger(
  state: CheckpointState,
  measurement: CheckpointMeasurement,
  settings: CheckpointSettings = {},
): CheckpointTrigger {
  const { tokens, windowTokens } = measurement;
  const { enabled = true, minTokensForGen = 5000, turnThreshold = 10 } = settings;
  if (!enabled || tokens === null || tokens < minTokensForGen) return { state, due: null, percent: null };
  const hasWindow = windowTokens !== null && windowTokens > 0;
  const crossing = crossThresholds(
    state.thresholds,
    hasWindow ? (tokens * 100) / windowTokens : null,
    settings.tokenThresholdPercents ?? [25, 50, 75],
  );
  const crossed = { ...state, thresholds: crossing.state };
  if (crossing.firedPercent !== null) return { state: crossed, due: "tokens", percent: crossing.firedPercent };
  if (turnThreshold > 0 && measurement.userMessages >= turnThreshold)
    return { state: crossed, due: "messages", percent: null };
  return { state: crossed, due: measurement.topicChanged === true ? "topic" : null, percent: null };
}
