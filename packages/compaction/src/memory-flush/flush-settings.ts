import { nearestName, optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** States how a prompt reaches the agent. */
export type FlushDelivery =
  /** Adds the prompt to the system text of each turn until the usage falls below the threshold. */
  | "system"
  /** Sends the prompt as a user message. */
  | "user"
  /**
   * Sends the prompt as a user message that starts with a mark, so that the agent can tell it from the user's words.
   */
  | "marked";

/** Sets at which share of the window the agent is asked, and the prompt. */
export interface FlushThreshold {
  /** Sets the threshold in percent of the window. */
  readonly percent: number;
  /** Holds the text. `{percent}` becomes the current figure, `YYYY-MM-DD` the local date. */
  readonly prompt: string;
  /** Sets how the prompt reaches the agent. @default "marked" */
  readonly injectAs?: FlushDelivery;
}

/** Sets when a memory flush is due, and its prompts. */
export interface MemoryFlushSettings {
  /** Asks the agent to store memories; false turns all prompts off. @default true */
  readonly enabled?: boolean;
  /** Shows prompts delivered as `system`, and the line with the size of the context. @default true */
  readonly showInSystemPrompt?: boolean;
  /** Sets when the agent is asked; each percent may occur once. @default 50 and 75 as `system`, 90 as `user` */
  readonly thresholds?: readonly FlushThreshold[];
  /** Sets the time zone of the date in the prompts, as an IANA name. @default the system's */
  readonly timeZone?: string;
  /** Names the folder below the workspace that holds the memory files. @default "memory" */
  readonly memoryFolder?: string;
  /**
   * Names the folder that relative paths start from. With it, absolute paths outside it do not count. @default unknown
   */
  readonly workspaceRoot?: string;
  /** Lists the tools that write files. @default write, edit and the names of other agents for them */
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

/** Describes a setting that cannot be used. */
interface SettingProblem {
  /** Holds the whole path of the setting, such as `memoryFlush.thresholds.0.percent`. */
  readonly key: string;
  /** Holds the configured value. */
  readonly value: unknown;
  /** States the accepted values as a phrase. For an unknown name it holds the nearest setting or all settings. */
  readonly allowed: string;
}

const deliveries: readonly string[] = ["system", "user", "marked"];

/** Returns the problems of settings for the program that loads them; empty when the settings are valid. */
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
