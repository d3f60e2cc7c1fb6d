import { nearestName, optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** How a prompt reaches the agent. */
export type FlushDelivery =
  /** In the system text of each turn until the usage falls below the threshold. */
  | "system"
  /** As a message of the user. */
  | "user"
  /** As a message of the user that begins with a mark, so that it is not taken for theirs. */
  | "marked";

/** How full the window is when the agent is asked, and what it is asked. */
export interface FlushThreshold {
  /** Of the window. */
  readonly percent: number;
  /** `{percent}` becomes the true figure, `YYYY-MM-DD` the local date. */
  readonly prompt: string;
  /** How the prompt reaches the agent. @default "marked" */
  readonly injectAs?: FlushDelivery;
}

/** When a memory flush is due, and what it says. */
export interface MemoryFlushSettings {
  /** Whether the agent is asked at all. @default true */
  readonly enabled?: boolean;
  /** Whether prompts delivered as `system`, and the line that says how full the context is, are shown. @default true */
  readonly showInSystemPrompt?: boolean;
  /** When the agent is asked; each percent may occur once. @default 50 and 75 as `system`, 90 as `user` */
  readonly thresholds?: readonly FlushThreshold[];
  /** An IANA name, for the date in the prompts. @default the system's */
  readonly timeZone?: string;
  /** The folder below the workspace that holds the memory files. @default "memory" */
  readonly memoryFolder?: string;
  /** Where relative paths begin; with it an absolute path counts only below it. @default unknown */
  readonly workspaceRoot?: string;
  /** Names of tools that write files. @default write, edit and what other agents call them */
  readonly writeTools?: readonly string[];
}

const { filledText, flag, listOf, objectOf, oneOf, required, text } = optionKinds;

const percent: OptionKind = {
  expected: "a number above 0 and below 100",
  accepts: (value) => typeof value === "number" && value > 0 && value < 100,
};

const timeZone: OptionKind = {
  expected: "an IANA name as Europe/Berlin",
  accepts: (value) => typeof value === "string" && isTimeZone(value),
};

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

const thresholdTable: OptionTable<FlushThreshold> = {
  percent: required(percent),
  prompt: required(filledText),
  injectAs: oneOf(["system", "user", "marked"]),
};

/** The kinds of the settings of a memory flush. */
export const flushSettingsTable: OptionTable<MemoryFlushSettings> = {
  enabled: flag,
  showInSystemPrompt: flag,
  thresholds: listOf(objectOf(thresholdTable)),
  timeZone,
  memoryFolder: text,
  workspaceRoot: text,
  writeTools: listOf(text),
};

export const defaultThresholds: readonly Required<FlushThreshold>[] = [
  {
    percent: 50,
    prompt: "Context at {percent}%. Consider noting key decisions to memory.",
    injectAs: "system",
  },
  {
    percent: 75,
    prompt: "Context at {percent}%. Write important context to memory/YYYY-MM-DD.md now.",
    injectAs: "system",
  },
  {
    percent: 90,
    prompt: [
      "[SYSTEM: pre-compaction memory flush]",
      "Context at {percent}%. Compaction imminent.",
      "Store durable memories now (use memory/YYYY-MM-DD.md; create memory/ if needed).",
      "If nothing to store, reply with NO_REPLY.",
    ].join("\n"),
    injectAs: "user",
  },
];

/** A setting that cannot be used. */
interface SettingProblem {
  /** The whole path of the setting, such as `memoryFlush.thresholds.0.percent`. */
  readonly key: string;
  /** The value that was given. */
  readonly value: unknown;
  /** What the setting takes, as a phrase; for an unknown name, the nearest known one or all of them. */
  readonly allowed: string;
}

const deliveries: readonly string[] = ["system", "user", "marked"];

/** What is wrong with settings, for whoever loads them; empty when nothing is. */
export function checkFlushSettings(settings: MemoryFlushSettings): readonly SettingProblem[] {
  const problems: SettingProblem[] = [...unknownNames("memoryFlush", settings, flushSettingsTable)];
  const seen = new Set<number>();
  for (const [index, threshold] of (settings.thresholds ?? []).entries()) {
    const key = `memoryFlush.thresholds.${index}`;
    const { percent, prompt, injectAs } = threshold;
    problems.push(...unknownNames(key, threshold, thresholdTable));
    const isPercent = typeof percent === "number" && percent > 0 && percent < 100;
    if (!isPercent) problems.push({ key: `${key}.percent`, value: percent, allowed: "a number above 0 and below 100" });
    else if (seen.has(percent)) problems.push({ key: `${key}.percent`, value: percent, allowed: "each percent once" });
    seen.add(percent);
    if (typeof prompt !== "string" || prompt.trim() === "") {
      problems.push({ key: `${key}.prompt`, value: prompt, allowed: "a text" });
    }
    if (injectAs !== undefined && !deliveries.includes(injectAs)) {
      problems.push({ key: `${key}.injectAs`, value: injectAs, allowed: deliveries.join(", ") });
    }
  }
  if (settings.timeZone !== undefined && !isTimeZone(settings.timeZone)) {
    problems.push({ key: "memoryFlush.timeZone", value: settings.timeZone, allowed: "an IANA name as Europe/Berlin" });
  }
  return problems;
}

function unknownNames(
  key: string,
  given: object,
  table: Readonly<Record<string, OptionKind>>,
): readonly SettingProblem[] {
  const known = Object.keys(table);
  return Object.entries(given)
    .filter(([name, value]) => value !== undefined && !known.includes(name))
    .map(([name, value]) => ({ key: `${key}.${name}`, value, allowed: nearestName(name, known) ?? known.join(", ") }));
}
