import { checkFlushSettings, type FlushThreshold } from "@throughline/compaction/internal";
import type { SettingValue } from "@throughline/core/internal";
import type { ConfigNote } from "./config-note.ts";
import { shown } from "./config-problem.ts";
import type { SettingSet } from "./setting-set.ts";

type Check = (settings: SettingSet, say: Say, notes: ConfigNote[]) => void;

/**
 * Replaces a value. Only a value that the user wrote gets a note, because the user does not expect a note about a
 * default.
 */
type Say = (key: string, used: SettingValue, why: string) => void;

/**
 * Refuses combinations that could have no effect in any window, and repairs combinations with one obvious meaning.
 * @throws {ThroughlineError} CONFIG_INVALID
 */
export function checkCombinations(settings: SettingSet): readonly ConfigNote[] {
  const notes: ConfigNote[] = [];
  const say: Say = (key, used, why) => {
    const before = settings.value(key);
    if (shown(before) === shown(used)) return;
    const place = settings.place(key);
    const isSet = settings.isSet(key);
    settings.repair(key, used);
    if (!isSet) return;
    const message = `${key} is ${shown(before)}; ${shown(used)} is used: ${why}.`;
    notes.push({ kind: "repaired", key, message, used, path: place?.path ?? null, line: place?.line ?? null });
  };
  for (const check of checks) check(settings, say, notes);
  return notes;
}

const checks: readonly Check[] = [
  checkpointOrder,
  checkpointWriters,
  preferredCheckpoint,
  keptParts,
  servedModels,
  summaryModels,
  retries,
  flushPrompts,
  flushTools,
  inheritedKeys,
  resets,
  resetRules,
  cacheTime,
];

/**
 * A written time implies that the user wants sessions to reset then. A time without a matching mode is therefore
 * refused.
 */
function resets(settings: SettingSet): void {
  const mode = String(settings.value("session.reset.mode"));
  for (const [key, modes] of [
    ["session.reset.idleMinutes", ["idle", "daily"]],
    ["session.reset.atHour", ["daily"]],
  ] as const) {
    if (!settings.isGiven(key) || (modes as readonly string[]).includes(mode)) continue;
    const allowed = `left out, or session.reset.mode ${modes.map((each) => `"${each}"`).join(" or ")}`;
    const message = `${key} is ${settings.number(key)} and session.reset.mode is "${mode}": it would have no effect; it must be ${allowed}.`;
    throw settings.refusal(key, message, allowed);
  }
}

/**
 * The rules by type and by channel follow the same rule as `resets`. Two rules for one type are refused, because `dm`
 * means `direct`.
 */
function resetRules(settings: SettingSet): void {
  for (const key of ["session.resetByType", "session.resetByChannel"]) {
    const rules = (settings.value(key) ?? {}) as Readonly<Record<string, Readonly<Record<string, SettingValue>>>>;
    for (const [name, { mode, ...times }] of Object.entries(rules)) {
      const useless = Object.keys(times).find((time) => mode === "never" || (mode === "idle" && time === "atHour"));
      if (useless === undefined) continue;
      const at = `${key}.${name}`;
      const allowed = `left out, or ${at}.mode ${useless === "atHour" ? '"daily"' : '"idle" or "daily"'}`;
      const message = `${at}.${useless} is ${shown(times[useless])} and ${at}.mode is ${shown(mode)}: it would have no effect; it must be ${allowed}.`;
      throw settings.refusal(key, message, allowed);
    }
    if (key !== "session.resetByType" || !("dm" in rules && "direct" in rules)) continue;
    const allowed = "one of the two";
    throw settings.refusal(key, `${key} has direct and dm, which are the same; keep ${allowed}.`, allowed);
  }
}

/** The functions of openclaw-compat do not read the configuration file, so the setting has no effect there. */
function cacheTime(settings: SettingSet, _say: Say, notes: ConfigNote[]): void {
  const key = "session.cacheTtlMs";
  if (settings.get(key).source !== "file") return;
  const reason = "commands keep no cache, and the functions of openclaw-compat read THROUGHLINE_SESSION_CACHE_TTL_MS";
  const place = settings.place(key);
  const message = `${key} has no effect in a file: ${reason}.`;
  notes.push({ kind: "ignored", key, message, path: place?.path ?? null, line: place?.line ?? null });
}

function checkpointOrder(settings: SettingSet, say: Say): void {
  for (const key of ["session.checkpoint.tokenThresholdPercents", "session.turn.warnAtPercents"]) {
    const percents = settings.value(key) as readonly number[];
    say(
      key,
      [...new Set(percents)].toSorted((one, other) => one - other),
      "they are crossed from below, each once",
    );
  }
}

function checkpointWriters(settings: SettingSet): void {
  const isOff = settings.value("session.checkpoint.enabled") === false;
  if (isOff || settings.value("session.checkpoint.model") !== null) return;
  if (settings.value("session.checkpoint.fallbackToMain") === true) return;
  const allowed = "true where session.checkpoint.model is not set, or session.checkpoint.enabled false";
  const message = `session.checkpoint.fallbackToMain is false and no model is named: nobody would write one; it must be ${allowed}.`;
  throw settings.refusal("session.checkpoint.fallbackToMain", message, allowed);
}

function preferredCheckpoint(settings: SettingSet, say: Say): void {
  if (settings.value("session.checkpoint.enabled") !== false) return;
  say("session.compaction.preferCheckpoint", false, "session.checkpoint.enabled is false, so there is none to prefer");
}

function keptParts(settings: SettingSet, say: Say): void {
  const [keep, emergency] = ["session.compaction.keepPercent", "session.compaction.emergencyKeepPercent"] as const;
  if (settings.number(emergency) >= settings.number(keep)) return;
  if (settings.isGiven(emergency) && settings.isGiven(keep)) {
    const allowed = `at least ${settings.number(keep)}, which is ${keep}`;
    const message = `${emergency} is ${settings.number(emergency)}: less would stay where the summary is poorer; it must be ${allowed}.`;
    throw settings.refusal(emergency, message, allowed);
  }
  say(emergency, settings.value(keep), `never less stays than ${keep} says`);
}

/**
 * The documents behind the presets name these models, which no provider serves. Each name maps to its current
 * replacement.
 */
const replacedModels: Readonly<Record<string, string>> = { "anthropic/claude-3-haiku": "anthropic/claude-haiku-4-5" };

function servedModels(settings: SettingSet, say: Say): void {
  const served = (name: SettingValue): SettingValue =>
    typeof name === "string" && Object.hasOwn(replacedModels, name) ? (replacedModels[name] ?? name) : name;
  const why = "Anthropic's API has no model of the other name";
  say("session.checkpoint.model", served(settings.value("session.checkpoint.model")), why);
  const models = settings.value("session.compaction.summaryModels");
  if (Array.isArray(models)) say("session.compaction.summaryModels", models.map(served), why);
}

function summaryModels(settings: SettingSet): void {
  const key = "session.compaction.summaryModels";
  const models = (settings.value(key) ?? []) as readonly string[];
  const writer = settings.value("session.checkpoint.model");
  for (const [at, name] of [
    ...models.map((name) => [key, name] as const),
    ["session.checkpoint.model", writer] as const,
  ]) {
    if (typeof name !== "string" || name === "ollama" || /^[^/\s]+\/\S+$/.test(name)) continue;
    const allowed = "provider/name, as anthropic/claude-haiku-4-5, or ollama";
    throw settings.refusal(at, `${at} has ${shown(name)}; it must be ${allowed}.`, allowed);
  }
  if (models.includes("ollama") || writer === "ollama") return;
  for (const name of ["url", "model", "timeoutSeconds", "contextTokens"]) {
    const part = `session.compaction.ollama.${name}`;
    if (!settings.isGiven(part)) continue;
    const allowed = `left out, or ollama named in ${key} or session.checkpoint.model`;
    throw settings.refusal(part, `${part} has no effect: nothing asks ollama; it must be ${allowed}.`, allowed);
  }
}

function retries(settings: SettingSet, say: Say): void {
  const area = "session.compaction";
  const models = (settings.value(`${area}.summaryModels`) ?? []) as readonly string[];
  if (models.length === 0 && settings.value(`${area}.fallbackToMain`) === false) {
    say(`${area}.retryIntervalSeconds`, 0, "no model writes summaries, so none would be better");
  }
  const most = settings.number(`${area}.retryMaxDelayMs`);
  if (settings.number(`${area}.retryFirstDelayMs`) > most) {
    say(`${area}.retryFirstDelayMs`, most, "it is not longer than session.compaction.retryMaxDelayMs");
  }
}

function flushPrompts(settings: SettingSet, say: Say): void {
  if (settings.value("session.memoryFlush.enabled") === false) return;
  const key = "session.memoryFlush.thresholds";
  // The schema of the setting has already checked each member, so the cast is safe.
  const thresholds = settings.value(key) as unknown as readonly FlushThreshold[];
  const timeZone = settings.value("session.memoryFlush.timeZone") as string | null;
  const [problem] = checkFlushSettings({ thresholds, ...(timeZone === null ? {} : { timeZone }) });
  if (problem !== undefined) {
    const at = problem.key.endsWith("timeZone") ? "session.memoryFlush.timeZone" : key;
    const message = `session.${problem.key} is ${shown(problem.value)}; it must be ${problem.allowed}.`;
    throw settings.refusal(at, message, problem.allowed);
  }
  const ordered = thresholds.toSorted((one, other) => one.percent - other.percent);
  // Thresholds are plain JSON, but their interface has no index signature, so the compiler needs a cast.
  say(key, ordered as unknown as SettingValue, "they are crossed from below");
  const shows = settings.value("session.memoryFlush.showInSystemPrompt") !== false;
  if (shows || !thresholds.every(({ injectAs }) => injectAs === "system")) return;
  const allowed = "true where every threshold is delivered as system, or session.memoryFlush.enabled false";
  const message = `session.memoryFlush.showInSystemPrompt is false, so nothing would be asked; it must be ${allowed}.`;
  throw settings.refusal("session.memoryFlush.showInSystemPrompt", message, allowed);
}

/** A flush that the user enabled needs a tool that writes files. `memory` is the smallest set with such a tool. */
function flushTools(settings: SettingSet, say: Say, notes: ConfigNote[]): void {
  const key = "session.memoryFlush.enabled";
  if (settings.value(key) !== true) return;
  const tools = String(settings.value("tools"));
  if (tools === "all" || tools === "memory") return;
  if (settings.isSet("tools")) {
    say(
      key,
      false,
      `tools is ${tools}, so no tool could write a file; set tools to memory or all, or pass --tools all`,
    );
    return;
  }
  settings.fill("tools", "memory", key);
  const folder = String(settings.value("session.memoryFlush.memoryFolder"));
  const message = `${key} is true, so tools is memory: the model may also write files in ${folder} of the workspace.`;
  const place = settings.place(key);
  notes.push({
    kind: "repaired",
    key: "tools",
    message,
    used: "memory",
    path: place?.path ?? null,
    line: place?.line ?? null,
  });
}

function inheritedKeys(settings: SettingSet): void {
  const [read, write] = ["session.inherit.readKey", "session.inherit.writeKey"] as const;
  const key = settings.value(write);
  if (key === null || (settings.value(read) !== null && settings.value(read) !== key)) return;
  const allowed = settings.value(read) === null ? `left out where ${read} is not set` : `another key than ${read}`;
  const why = settings.value(read) === null ? "no one session would go there" : "two programs would write one session";
  throw settings.refusal(write, `${write} is ${shown(key)}: ${why}; it must be ${allowed}.`, allowed);
}
