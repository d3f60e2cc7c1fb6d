import type { CheckpointSettings } from "@throughline/checkpoint/internal";
import type { CompactionSettings } from "@throughline/compaction";
import type { MemoryFlushSettings, RetryLimits } from "@throughline/compaction/internal";
import { readResetPolicy, readSendPolicy, type ResetPolicy, type SendPolicy } from "@throughline/policy";
import type { SendPolicyMode } from "@throughline/policy/internal";
import type { SettingValue } from "@throughline/core/internal";
import type { Config } from "./resolve-config.ts";
import type { Setting } from "./setting-set.ts";

/** Describes a model that works beside the answering model, such as a summarizer. */
export interface HelperModel {
  /** Names the provider, such as `anthropic` or `ollama`. */
  readonly provider: string;
  /** Names the model by the provider's own name. */
  readonly modelId: string;
  /** States the address of the provider; null means its usual address. */
  readonly baseUrl: string | null;
  /** States the context window in tokens; null means the size that the model states. */
  readonly contextTokens: number | null;
  /** Limits the time for one summary, in milliseconds; null means the usual limit. */
  readonly deadlineMs: number | null;
}

/** Holds the configuration of conversations in the form that the facade and the summarizers accept. */
export interface SessionSettings {
  /** Sets when sessions are compacted, and what is kept; holds only values that were set. */
  readonly compaction: CompactionSettings & {
    /** Starts a summary in parallel with the turns before a compaction is due. @default true */
    readonly background?: boolean;
    /** Lets a checkpoint that covers half of the context replace a new summary. @default true */
    readonly preferCheckpoint?: boolean;
    /** Limits the time of all summarizers of one compaction together, in milliseconds. @default 180_000 */
    readonly deadlineMs?: number;
  };
  /** Sets when checkpoints are written; holds only values that were set. */
  readonly checkpoint: CheckpointSettings & {
    /** Limits the time of all models asked for one checkpoint together, in milliseconds. @default 600_000 */
    readonly deadlineMs?: number;
  };
  /** Names the model that is asked for checkpoints before the answering model; null for none. */
  readonly checkpointModel: HelperModel | null;
  /** Lets the answering model write a checkpoint when `checkpointModel` could not. */
  readonly checkpointFallsBack: boolean;
  /** Sets the memory flush; undefined enables the flush when the agent can write files. */
  readonly memoryFlush: MemoryFlushSettings | undefined;
  /** Sets when summaries that no model wrote are written again; holds only values that were set. */
  readonly retry: RetryLimits & {
    /** Sets how often such summaries are searched for, in seconds; 0 disables the search. @default 60 */
    readonly intervalSeconds?: number;
  };
  /** Sets how tool results are shortened when a request does not fit. */
  readonly results: {
    /** Sets which parts of a shortened tool result stay. @default "head-and-tail" */
    readonly keep?: "head" | "head-and-tail";
    /**
     * Limits the size of a tool result, in percent of the window at four characters per token.
     * @default by the window
     */
    readonly resultPercent?: number;
  };
  /** Sets how a model is asked for a summary: under headings, or in prose with a short instruction. */
  readonly summaryStyle: "sections" | "concise";
  /**
   * Sets how a model that writes a summary reads successful tool results: `marker` shows their length alone, `keep`
   * shows their text up to a limit.
   */
  readonly summaryToolResults: "marker" | "keep";
  /**
   * Limits the length of a message that a model reads uncut for a summary, in characters; null derives it from the
   * window.
   */
  readonly summaryMessageChars: number | null;
  /**
   * Lists the models that are asked for summaries before the answering model, in this order. Nothing is sent to a
   * provider that is not named here.
   */
  readonly summaryModels: readonly HelperModel[];
  /** Asks the answering model for summaries after `summaryModels`. */
  readonly asksMainModel: boolean;
  /** Sets when a summary model that keeps failing is skipped. */
  readonly breaker: {
    /** Sets after how many failures in a row a model is skipped. */
    readonly threshold: number;
    /** Sets how long a model is skipped, in milliseconds. */
    readonly resetMs: number;
  };
  /** Sets how turns run. */
  readonly turn: {
    /** Limits the model calls in one turn. */
    readonly maxSteps: number;
    /** Runs the tools of one reply at the same time. */
    readonly parallelTools: boolean;
    /** Sets how long a turn may show no sign of life before another process may take it over, in milliseconds. */
    readonly leaseMs: number;
    /** Sets the shares of the window, in percent, at which a prompt is announced before it is sent. */
    readonly warnAtPercents: readonly number[];
    /**
     * Sets what happens when an older history does not fit: `compact` summarizes it, `cut` leaves its oldest turns out
     * of requests.
     */
    readonly restore: "compact" | "cut";
    /** Ends the system prompt with a line that states how full the context is. */
    readonly showContextLine: boolean;
  };
  /** Limits the tokens of an answer; null leaves the limit to the provider. */
  readonly maxOutputTokens: number | null;
  /** Holds the send policy; null allows every message. */
  readonly sendPolicy: SendPolicy | null;
  /** Sets when sessions reset automatically. */
  readonly reset: ResetPolicy;
  /** Sets how long the functions of openclaw-compat may reuse loaded entries, in milliseconds. */
  readonly cacheTtlMs: number;
  /** Names the session that a conversation opens by default; null opens the newest session of the folder. */
  readonly defaultKey: string | null;
  /** Sets whether rules, or a summary model after the rules, give a session its title. */
  readonly titles: "rules" | "model" | "off";
  /** Sets which sessions of another program are imported. */
  readonly inherit: {
    /** Enables the import; null asks the user first. */
    readonly enabled: boolean | null;
    /** States the directory that holds the other program's sessions. */
    readonly source: string;
    /** Limits the import to one key; null imports every session. */
    readonly readKey: string | null;
    /** Sets the key under which the session continues; null keeps its original key. */
    readonly writeKey: string | null;
  };
}

const compactionKeys: readonly (keyof SessionSettings["compaction"])[] = [
  "reserveTokens",
  "reserveFloorTokens",
  "inAdvance",
  "background",
  "maxMessages",
  "keepPercent",
  "emergencyKeepPercent",
  "minMessages",
  "keepRecentTokens",
  "mostKeptPercent",
  "maxSummaryTokens",
  "maxDetailTokens",
  "toolResultChars",
  "preferCheckpoint",
  "deadlineMs",
];

/** Returns the settings of a configuration, grouped by the packages that use them. The function is pure. */
export function sessionSettings({ settings }: Config): SessionSettings {
  const values = new Values(settings);
  const maxOutputTokens = values.number("maxOutputTokens");
  return {
    compaction: values.block("session.compaction", compactionKeys),
    checkpoint: values.block("session.checkpoint", [
      "enabled",
      "tokenThresholdPercents",
      "turnThreshold",
      "minTokensForGen",
      "deadlineMs",
    ]),
    checkpointModel: helperOf(values, values.of("session.checkpoint.model")),
    checkpointFallsBack: values.of("session.checkpoint.fallbackToMain") === true,
    memoryFlush: memoryFlush(values),
    retry: retry(values),
    results: values.block("session.guard", ["keep", "resultPercent"]),
    summaryStyle: values.of("session.compaction.summaryStyle") as SessionSettings["summaryStyle"],
    summaryToolResults: values.of("session.compaction.summaryToolResults") as SessionSettings["summaryToolResults"],
    summaryMessageChars: values.of("session.compaction.summaryMessageChars") as number | null,
    summaryModels: ((values.of("session.compaction.summaryModels") ?? []) as readonly string[])
      .map((name) => helperOf(values, name))
      .filter((model) => model !== null),
    asksMainModel: values.of("session.compaction.fallbackToMain") === true,
    breaker: {
      threshold: values.number("session.compaction.ollamaFailureThreshold"),
      resetMs: values.number("session.compaction.ollamaResetMinutes") * 60_000,
    },
    turn: {
      maxSteps: values.number("session.turn.maxSteps"),
      parallelTools: values.of("session.turn.parallelTools") === true,
      leaseMs: values.number("session.turn.leaseMs"),
      warnAtPercents: values.of("session.turn.warnAtPercents") as readonly number[],
      restore: values.of("session.turn.restore") as "compact" | "cut",
      showContextLine: showsContextLine(values),
    },
    maxOutputTokens: maxOutputTokens === 0 ? null : maxOutputTokens,
    sendPolicy: sendPolicy(values),
    reset: readResetPolicy({
      reset: values.block("session.reset", ["mode", "idleMinutes", "atHour"]),
      resetByType: resetRules(values, "session.resetByType"),
      resetByChannel: resetRules(values, "session.resetByChannel"),
    }),
    cacheTtlMs: values.number("session.cacheTtlMs"),
    defaultKey: defaultKey(values),
    titles: values.of("session.titles") as SessionSettings["titles"],
    inherit: {
      enabled: values.of("session.inherit.enabled") as boolean | null,
      source: String(values.of("session.inherit.source")),
      readKey: values.of("session.inherit.readKey") as string | null,
      writeKey: values.of("session.inherit.writeKey") as string | null,
    },
  };
}

interface WrittenResetRule {
  readonly mode?: string;
  readonly idleMinutes?: number;
  readonly atHour?: number;
}

class Values {
  readonly #settings: ReadonlyMap<string, Setting>;

  constructor(settings: readonly Setting[]) {
    this.#settings = new Map(settings.map((setting) => [setting.key, setting]));
  }

  of(key: string): SettingValue {
    return this.#settings.get(key)?.value ?? null;
  }

  number(key: string): number {
    return Number(this.of(key));
  }

  /** A value counts as set when it was written, or when it replaces the default. */
  isSet(key: string): boolean {
    const setting = this.#settings.get(key);
    return setting !== undefined && (setting.source !== "default" || setting.given !== undefined);
  }

  /** Only members that are set are passed on, because the package knows the defaults of the other members. */
  block<Block extends object>(area: string, names: readonly (keyof Block & string)[]): Block {
    const set = names.filter((name) => this.isSet(`${area}.${name}`) && this.of(`${area}.${name}`) !== null);
    return Object.fromEntries(set.map((name) => [name, this.of(`${area}.${name}`)])) as Block;
  }
}

/**
 * A rule takes missing fields from the general rule. A written time implies that the user wants sessions to reset then.
 */
function resetRules(values: Values, key: string): Readonly<Record<string, WrittenResetRule>> {
  const general = values.block<WrittenResetRule>("session.reset", ["mode", "idleMinutes", "atHour"]);
  const written = (values.of(key) ?? {}) as Readonly<Record<string, WrittenResetRule>>;
  const whole = (rule: WrittenResetRule): WrittenResetRule => {
    const implied = rule.atHour !== undefined ? "daily" : rule.idleMinutes !== undefined ? "idle" : general.mode;
    const mode = rule.mode ?? (general.mode === "daily" ? "daily" : implied) ?? "never";
    return { ...general, ...rule, mode };
  };
  return Object.fromEntries(Object.entries(written).map(([name, rule]) => [name, whole(rule)]));
}

function sendPolicy(values: Values): SendPolicy | null {
  const written = values.of("session.sendPolicy");
  return written === null ? null : readSendPolicy(written, values.of("session.sendPolicyMode") as SendPolicyMode);
}

function helperOf(values: Values, name: SettingValue): HelperModel | null {
  if (typeof name !== "string") return null;
  if (name === "ollama") {
    const of = (field: string): SettingValue => values.of(`session.compaction.ollama.${field}`);
    return {
      provider: "ollama",
      modelId: String(of("model")),
      baseUrl: String(of("url")),
      contextTokens: Number(of("contextTokens")),
      deadlineMs: Number(of("timeoutSeconds")) * 1000,
    };
  }
  const cut = name.indexOf("/");
  const [provider, modelId] = [name.slice(0, cut), name.slice(cut + 1)];
  return { provider, modelId, baseUrl: null, contextTokens: null, deadlineMs: null };
}

function retry(values: Values): SessionSettings["retry"] {
  const area = "session.compaction";
  const set = values.block<Record<string, number>>(area, [
    "retryIntervalSeconds",
    "retryMaxAttempts",
    "retryFirstDelayMs",
    "retryMaxDelayMs",
  ]);
  const named = Object.entries(set).map(([name, value]) => {
    const rest = name.slice("retry".length);
    return [`${rest[0]?.toLowerCase() ?? ""}${rest.slice(1)}`, value];
  });
  return Object.fromEntries(named) as SessionSettings["retry"];
}

/** A session that continues under another key is opened under that key. */
function defaultKey(values: Values): string | null {
  const key = values.of("session.defaultKey") as string | null;
  const writeKey = values.of("session.inherit.writeKey") as string | null;
  return key !== null && key === values.of("session.inherit.readKey") ? (writeKey ?? key) : key;
}

/** The line belongs to the memory flush. Without a flush the line appears only when a setting asks for it by name. */
function showsContextLine(values: Values): boolean {
  const line = values.of("session.turn.showContextLine");
  if (line !== null) return line === true;
  const isMeant = values.isSet("session.memoryFlush.showInSystemPrompt") || memoryFlush(values)?.enabled !== false;
  return isMeant && values.of("session.memoryFlush.showInSystemPrompt") === true;
}

/**
 * The flush is disabled when the agent has no tool that writes files. Otherwise only the values that were set are
 * returned.
 */
function memoryFlush(values: Values): MemoryFlushSettings | undefined {
  const set = values.block<MemoryFlushSettings>("session.memoryFlush", [
    "enabled",
    "showInSystemPrompt",
    "thresholds",
    "timeZone",
    "memoryFolder",
    "writeTools",
  ]);
  const tools = values.of("tools");
  if (tools !== "all" && tools !== "memory") return { enabled: false };
  return Object.keys(set).length === 0 ? undefined : set;
}
