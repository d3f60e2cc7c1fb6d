import { crossThresholds } from "@throughline/tokens/internal";
import type { CheckpointState } from "./checkpoint-state.ts";
import { optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** Sets when a checkpoint is due, and how many tokens it needs. */
export interface CheckpointSettings {
  /** Allows checkpoints; false never asks a writer. @default true */
  readonly enabled?: boolean;
  /** Sets the shares of the window at which a checkpoint is due, in percent. @default [25, 50, 75] */
  readonly tokenThresholdPercents?: readonly number[];
  /** Sets after how many user messages a checkpoint is due. @default 10 */
  readonly turnThreshold?: number;
  /** Sets the number of tokens below which no checkpoint is due. @default 5000 */
  readonly minTokensForGen?: number;
}

const percentKind: OptionKind = {
  expected: "a number above 0 and below 100",
  accepts: (value) => typeof value === "number" && value > 0 && value < 100,
};

export const checkpointSettingsTable: OptionTable<CheckpointSettings> = {
  enabled: optionKinds.flag,
  tokenThresholdPercents: optionKinds.listOf(percentKind),
  turnThreshold: optionKinds.number({ min: 0, max: 100_000 }),
  minTokensForGen: optionKinds.number({ min: 0, max: 10_000_000 }),
};

/** Measures the window after a turn, and the activity since the last checkpoint. */
export interface CheckpointMeasurement {
  /** Counts the tokens in the window now. Null when the number is unknown or stale. */
  readonly tokens: number | null;
  /** States the size of the window in tokens. Null and 0 mean unknown; then only messages are counted. */
  readonly windowTokens: number | null;
  /** Counts the user messages since the last checkpoint. */
  readonly userMessages: number;
  /** States whether the caller detected a change of topic. @default false */
  readonly topicChanged?: boolean;
}

export interface CheckpointTrigger {
  /** Contains the thresholds after the measurement. */
  readonly state: CheckpointState;
  /** Names the trigger that fired. Null when no checkpoint is due. */
  readonly due: "tokens" | "messages" | "topic" | null;
  /** States the highest threshold that was crossed, in percent. Null for other triggers. */
  readonly percent: number | null;
}

/**
 * Decides whether a checkpoint is due: at a share of the window, after a number of messages, or on a change of topic.
 * Below the token floor no threshold counts as crossed, so that it can still fire when the floor is reached. The
 * function is pure.
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
