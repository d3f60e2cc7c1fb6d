import { type FlushThreshold, reachableThresholds, settingsForWindow } from "@throughline/compaction/internal";
import type { CompactionSettings } from "@throughline/compaction";
import type { SettingValue } from "@throughline/core/internal";
import type { ConfigNote } from "./config-note.ts";
import { shown } from "./config-problem.ts";
import type { SettingSet } from "./setting-set.ts";

const area = "session.compaction";

/**
 * Checks the settings against a window of this size, in tokens; null means that the window is unknown. The packages
 * that use the settings do the same once they know the window, and report it in their events. The values stay as
 * written, because another model has another window.
 * @throws {ThroughlineError} CONFIG_INVALID for what no window of that size could follow
 */
export function checkWindow(settings: SettingSet, windowTokens: number | null): readonly ConfigNote[] {
  const notes: ConfigNote[] = [];
  const note = (kind: ConfigNote["kind"], key: string, message: string, used?: SettingValue): void => {
    if (!settings.isSet(key)) return;
    const place = settings.place(key);
    const at = { path: place?.path ?? null, line: place?.line ?? null };
    notes.push({ kind, key, message, ...(used === undefined ? {} : { used }), ...at });
  };
  const effective = settingsForWindow(compactionValues(settings), windowTokens);
  const reserve = effective.repairs.find(({ key }) => key === "reserveTokens");
  if (reserve !== undefined) {
    const isFloor = reserve.given < reserve.used;
    const remedy = isFloor ? `; set ${area}.reserveFloorTokens to ${reserve.given} as well to keep it` : "";
    const message = `${area}.reserveTokens is ${reserve.given}; ${reserve.used} is used: ${reserve.reason}${remedy}.`;
    note("repaired", `${area}.reserveTokens`, message, reserve.used);
  } else noteShortAnswers(settings, note);
  if (windowTokens === null || effective.triggerTokens === null) return notes;
  for (const [name, used, share] of [
    ["keepRecentTokens", effective.keepTokens, "a quarter"],
    ["maxSummaryTokens", effective.maxSummaryTokens, "a tenth"],
    ["maxDetailTokens", effective.maxDetailTokens, "a twentieth"],
  ] as const) {
    const given = settings.number(`${area}.${name}`);
    const message = `${area}.${name} is ${given}; ${used} is used: more than ${share} of the window.`;
    if (used < given) note("repaired", `${area}.${name}`, message, used);
  }
  checkOutput(settings, windowTokens);
  checkpointsInReach(settings, windowTokens, effective.triggerTokens, note);
  flushInReach(settings, windowTokens, effective.triggerTokens, note);
  return notes;
}

/** A small reserve is used as written, because the request asks for a shorter answer when the reserve is too small. */
function noteShortAnswers(settings: SettingSet, note: Note): void {
  const [reserve, output] = [settings.number(`${area}.reserveTokens`), settings.number("maxOutputTokens")];
  if (reserve >= output) return;
  const message = `${area}.reserveTokens is ${reserve}, less than maxOutputTokens (${output}): just before a compaction an answer has at most ${reserve} tokens.`;
  note("repaired", `${area}.reserveTokens`, message, reserve);
}

type Note = (kind: ConfigNote["kind"], key: string, message: string, used?: SettingValue) => void;

function compactionValues(settings: SettingSet): CompactionSettings {
  const names = ["reserveTokens", "reserveFloorTokens", "keepRecentTokens", "maxSummaryTokens", "maxDetailTokens"];
  const given = names.filter((name) => settings.isSet(`${area}.${name}`));
  return Object.fromEntries(given.map((name) => [name, settings.number(`${area}.${name}`)]));
}

function checkOutput(settings: SettingSet, windowTokens: number): void {
  const output = settings.number("maxOutputTokens");
  if (output < windowTokens || !settings.isSet("maxOutputTokens")) return;
  const allowed = `less than the window of ${windowTokens} tokens`;
  throw settings.refusal("maxOutputTokens", `maxOutputTokens is ${output}; it must be ${allowed}.`, allowed);
}

function checkpointsInReach(settings: SettingSet, windowTokens: number, triggerTokens: number, note: Note): void {
  if (settings.value("session.checkpoint.enabled") === false) return;
  const floor = "session.checkpoint.minTokensForGen";
  if (settings.isGiven(floor) && settings.number(floor) >= triggerTokens) {
    const allowed = `less than ${triggerTokens}, where the window of ${windowTokens} tokens is compacted`;
    throw settings.refusal(floor, `${floor} is ${settings.number(floor)}; it must be ${allowed}.`, allowed);
  }
  const key = "session.checkpoint.tokenThresholdPercents";
  const percents = settings.value(key) as readonly number[];
  const most = (triggerTokens * 100) / windowTokens;
  const reached = percents.filter((percent) => percent < most);
  if (reached.length === percents.length) return;
  const message = `${key} is ${shown(percents)}; ${shown(reached)} can be reached: compaction comes at ${most.toFixed(1)} % of the window.`;
  note("repaired", key, message, reached);
}

function flushInReach(settings: SettingSet, windowTokens: number, triggerTokens: number, note: Note): void {
  if (settings.value("session.memoryFlush.enabled") === false) return;
  const key = "session.memoryFlush.thresholds";
  // The schema of the setting has already checked each member, so the cast is safe.
  const thresholds = settings.value(key) as unknown as readonly FlushThreshold[];
  const sizes = { windowTokens, compactAtTokens: triggerTokens };
  for (const { askedPercent, usedPercent, reason } of reachableThresholds({ thresholds }, sizes).repairs) {
    const used = usedPercent === null ? "it is left out" : `it fires at ${usedPercent} %`;
    note("repaired", key, `${key} has one at ${askedPercent} %; ${used}: ${reason}.`, usedPercent);
  }
}
