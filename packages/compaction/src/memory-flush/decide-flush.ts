import type { RecordDraft, SessionEntry } from "@throughline/core";
import { crossThresholds, type ThresholdPhase, type ThresholdState } from "@throughline/tokens/internal";
import { flushPatch, readFlushState, type FlushState } from "./flush-state.ts";
import { flushSettingsTable, type MemoryFlushSettings } from "./flush-settings.ts";
import { flushSteps } from "./flush-steps.ts";
import { promptText } from "./prompt-text.ts";
import { reachableThresholds, type ReachableThreshold, type ThresholdRepair } from "./reachable-thresholds.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** What `decideFlush` decides by. */
export interface FlushInput {
  /** As it is now. */
  readonly entry: SessionEntry;
  /** Of the next request, with the message that is about to be sent; null when it is not known. */
  readonly tokens: number | null;
  /** The size of the model's context window in tokens; null when it is unknown, and no threshold fires. */
  readonly windowTokens: number | null;
  /** Where compaction is due. */
  readonly compactAtTokens: number | null;
  /** A compaction comes next, because it is due or because a call overflowed: what was not asked is asked now. */
  readonly isCompactionNext: boolean;
  /** The time of the step, UTC milliseconds; its local date goes into the prompts. */
  readonly nowMs: number;
}

const { flag, number, object, orNull, required } = optionKinds;

/** The types of the input of `decideFlush`. */
export const flushInputTable: OptionTable<FlushInput> = {
  entry: required(object),
  tokens: required(orNull(number({ min: 0 }))),
  windowTokens: required(orNull(number({ min: 0 }))),
  compactAtTokens: required(orNull(number())),
  isCompactionNext: required(flag),
  nowMs: required(number()),
};

/** Whether a flush is due, and what it appends. */
export interface FlushDecision {
  /**
   * To be appended and answered by the agent before the user's message and before the compaction; null when nothing is
   * asked.
   */
  readonly message: RecordDraft | null;
  /** For the system text of this turn; null when there is nothing to say. */
  readonly systemText: string | null;
  /** The threshold that fired in this step; null when none did. */
  readonly fired: ReachableThreshold | null;
  /** Why a threshold fired: its percent was crossed, or a compaction comes next. Null when none fired. */
  readonly why: "crossed" | "before-compaction" | null;
  /** Configured percents that were overtaken in this step and do not fire in this cycle. */
  readonly passedPercents: readonly number[];
  /** Tokens the exchange has before the window ends; null when it is not known. Where it is small the request is shortened. */
  readonly roomTokens: number | null;
  /** The state after this step; `patch` stores it. */
  readonly state: FlushState;
  /** To be set in the entry in the same commit as the message. */
  readonly patch: Readonly<Record<string, unknown>>;
  /** Thresholds that were moved or dropped because they could not fire in this window. */
  readonly repairs: readonly ThresholdRepair[];
}

/**
 * Whether the agent is to be asked to store what it wants to keep, before a call or before a compaction. Pure. Each
 * threshold fires once a cycle; the highest of several crossed at once fires, and those under it count as fired. When a
 * compaction comes next, the highest one that asks by a message and has not fired does so first.
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

/** The user message of a flush, marked as such. */
function flushMessage(content: string, nowMs: number): RecordDraft {
  return { type: "message", message: { role: "user", content, source: "flush", timestamp: nowMs } };
}

/** Of the prompts for the system text, the one of the highest threshold the usage is at. */
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

/** The highest threshold that asks by a message, if it has not fired yet. */
function urgentOf(state: ThresholdState, thresholds: readonly ReachableThreshold[]): ReachableThreshold | null {
  const highest = thresholds.findLast(isMessage);
  if (highest === undefined) return null;
  return (state.phases[highest.askedPercent] ?? "armed") === "armed" ? highest : null;
}

/** Crosses the thresholds where they fire; the state knows them by what was configured. */
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
    // What this window has no room for keeps its phase for a larger one.
    state: { v: 1, phases: { ...state.phases, ...(Object.fromEntries(back) as Record<string, ThresholdPhase>) } },
    firedPercent: crossing.firedPercent === null ? null : (asked.get(crossing.firedPercent) ?? null),
    passedPercents: crossing.passedPercents.map((one) => asked.get(one) ?? one),
  };
}

/** Marks one as fired although it was not crossed, and those under it as passed. */
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
