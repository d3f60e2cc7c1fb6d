import type { RecordDraft, SessionEntry } from "@throughline/core";
import { crossThresholds, type ThresholdPhase, type ThresholdState } from "@throughline/tokens/internal";
import { flushPatch, readFlushState, type FlushState } from "./flush-state.ts";
import { flushSettingsTable, type MemoryFlushSettings } from "./flush-settings.ts";
import { flushSteps } from "./flush-steps.ts";
import { promptText } from "./prompt-text.ts";
import { reachableThresholds, type ReachableThreshold, type ThresholdRepair } from "./reachable-thresholds.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** Holds the facts that `decideFlush` decides by. */
export interface FlushInput {
  /** Holds the current entry of the session. */
  readonly entry: SessionEntry;
  /** Counts the tokens of the next request, including the message that is about to be sent; null when unknown. */
  readonly tokens: number | null;
  /** Holds the size of the model's context window in tokens; null when unknown, and then no threshold fires. */
  readonly windowTokens: number | null;
  /** Holds the number of tokens at which compaction is due; null means the end of the window. */
  readonly compactAtTokens: number | null;
  /**
   * Is true when a compaction follows, because it is due or because a call overflowed. The flush must then happen now.
   */
  readonly isCompactionNext: boolean;
  /** Holds the time of the step in UTC milliseconds; its local date goes into the prompts. */
  readonly nowMs: number;
}

const { flag, number, object, orNull, required } = optionKinds;

export const flushInputTable: OptionTable<FlushInput> = {
  entry: required(object),
  tokens: required(orNull(number({ min: 0 }))),
  windowTokens: required(orNull(number({ min: 0 }))),
  compactAtTokens: required(orNull(number())),
  isCompactionNext: required(flag),
  nowMs: required(number()),
};

/** States whether a flush is due, and what it appends. */
export interface FlushDecision {
  /**
   * Holds the message to append and to let the agent answer, before the user's message and before the compaction. Null
   * when the agent is not asked.
   */
  readonly message: RecordDraft | null;
  /** Holds the text to add to the system text of this turn; null when there is none. */
  readonly systemText: string | null;
  /** Holds the threshold that fired in this step; null when none fired. */
  readonly fired: ReachableThreshold | null;
  /** States why a threshold fired: its percent was crossed, or a compaction follows. It is null when none fired. */
  readonly why: "crossed" | "before-compaction" | null;
  /** Lists the configured percents that a higher threshold passed over in this step. They do not fire in this cycle. */
  readonly passedPercents: readonly number[];
  /**
   * Counts the tokens between the request and the end of the window; null when unknown. A caller with little room
   * shortens the request.
   */
  readonly roomTokens: number | null;
  /** Holds the state after this step; `patch` stores it. */
  readonly state: FlushState;
  /** Holds the patch of the entry. Commit it together with the message. */
  readonly patch: Readonly<Record<string, unknown>>;
  /** Lists the thresholds that were moved or dropped because they could not fire in this window. */
  readonly repairs: readonly ThresholdRepair[];
}

/**
 * Decides whether to ask the agent to store memories, before a call or before a compaction. The function is pure. Each
 * threshold fires once per cycle. When several are crossed at once, the highest fires and the lower ones count as
 * passed. When a compaction follows, the highest threshold that is delivered as a message fires first, if it has not
 * fired yet.
 *
 * @throws {ThroughlineError} INPUT_INVALID for a setting or a size that is not known, has another type, or is out of range
 */
export function decideFlush(input: FlushInput, settings: MemoryFlushSettings = {}): FlushDecision {
  assertKnownOptions<MemoryFlushSettings>("decideFlush", settings, flushSettingsTable, "settings");
  assertKnownOptions<FlushInput>("decideFlush", input, flushInputTable, "input");
  const { tokens, windowTokens, nowMs } = input;
  const before = readFlushState(input.entry);
  const { compactAtTokens } = input;
  const { thresholds, repairs } = reachableThresholds(settings, { windowTokens, compactAtTokens });
  const hasWindow = windowTokens !== null && windowTokens > 0;
  const percent = tokens === null || !hasWindow ? null : (tokens * 100) / windowTokens;
  const crossing = cross(before.thresholds, percent, thresholds);
  const crossed = thresholds.find((threshold) => threshold.askedPercent === crossing.firedPercent) ?? null;
  const urgent = input.isCompactionNext && !isMessage(crossed) ? urgentOf(before.thresholds, thresholds) : null;
  const fired = urgent ?? crossed;
  const phases = urgent === null ? crossing.state : fire(crossing.state, urgent, thresholds);
  const asks = isMessage(fired);
  const phase = asks ? flushSteps[before.phase].fires.to : before.phase;
  const askedPercent = asks ? (fired?.askedPercent ?? null) : before.askedPercent;
  const state: FlushState = { ...before, thresholds: phases, phase, askedPercent };
  const shown = percent ?? fired?.percent ?? 0;
  const text = (threshold: ReachableThreshold): string => promptText(threshold, shown, nowMs, settings.timeZone);
  return {
    message: asks && fired !== null ? flushMessage(text(fired), nowMs) : null,
    systemText: systemText(settings, thresholds, percent, text),
    fired,
    why: fired === null ? null : urgent === null ? "crossed" : "before-compaction",
    passedPercents: crossing.passedPercents,
    roomTokens: tokens === null || !hasWindow ? null : Math.max(0, windowTokens - tokens),
    state,
    patch: flushPatch(state, asks ? nowMs : null),
    repairs,
  };
}

function isMessage(threshold: ReachableThreshold | null): boolean {
  return threshold !== null && threshold.injectAs !== "system";
}

function flushMessage(content: string, nowMs: number): RecordDraft {
  return { type: "message", message: { role: "user", content, source: "flush", timestamp: nowMs } };
}

/** Returns the prompt of the highest `system` threshold that the usage has reached. */
function systemText(
  settings: MemoryFlushSettings,
  thresholds: readonly ReachableThreshold[],
  percent: number | null,
  text: (threshold: ReachableThreshold) => string,
): string | null {
  if (settings.showInSystemPrompt === false || percent === null) return null;
  const reached = thresholds.findLast((one) => one.injectAs === "system" && one.percent <= percent);
  return reached === undefined ? null : text(reached);
}

/** Returns the highest threshold that is delivered as a message; null if it has already fired in this cycle. */
function urgentOf(state: ThresholdState, thresholds: readonly ReachableThreshold[]): ReachableThreshold | null {
  const highest = thresholds.findLast(isMessage);
  if (highest === undefined) return null;
  return (state.phases[highest.askedPercent] ?? "armed") === "armed" ? highest : null;
}

/**
 * Crosses the thresholds at the percent where they fire. The state stores the configured percent, because the firing
 * percent depends on the window.
 */
function cross(
  state: ThresholdState,
  percent: number | null,
  thresholds: readonly ReachableThreshold[],
): {
  readonly state: ThresholdState;
  readonly firedPercent: number | null;
  readonly passedPercents: readonly number[];
} {
  const asked = new Map(thresholds.map((threshold) => [threshold.percent, threshold.askedPercent]));
  const phases = thresholds.map(
    (threshold) => [threshold.percent, state.phases[threshold.askedPercent] ?? "armed"] as const,
  );
  const here: ThresholdState = { v: 1, phases: Object.fromEntries(phases) };
  const crossing = crossThresholds(here, percent, [...asked.keys()]);
  const back = Object.entries(crossing.state.phases).map(([key, phase]) => [asked.get(Number(key)) ?? key, phase]);
  return {
    // A threshold that this window has no room for keeps its phase for a larger window.
    state: { v: 1, phases: { ...state.phases, ...(Object.fromEntries(back) as Record<string, ThresholdPhase>) } },
    firedPercent: crossing.firedPercent === null ? null : (asked.get(crossing.firedPercent) ?? null),
    passedPercents: crossing.passedPercents.map((one) => asked.get(one) ?? one),
  };
}

/**
 * Marks a threshold as fired although it was not crossed. Lower thresholds count as passed, so that they do not fire
 * after it.
 */
function fire(
  state: ThresholdState,
  fired: ReachableThreshold,
  thresholds: readonly ReachableThreshold[],
): ThresholdState {
  const passed = thresholds
    .filter(({ percent, askedPercent }) => percent < fired.percent && state.phases[askedPercent] === "armed")
    .map(({ askedPercent }) => [askedPercent, "passed"] as const);
  return { v: 1, phases: { ...state.phases, ...Object.fromEntries(passed), [fired.askedPercent]: "fired" } };
}
