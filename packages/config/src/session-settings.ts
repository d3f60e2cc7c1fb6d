import type { CheckpointSettings } from "@throughline/checkpoint/internal";
import type { CompactionSettings } from "@throughline/compaction";
import type { MemoryFlushSettings, RetryLimits } from "@throughline/compaction/internal";
import { readResetPolicy, readSendPolicy, type ResetPolicy, type SendPolicy } from "@throughline/policy";
import { type SendPolicyMode } from "@throughline/policy/internal";
import type { SettingValue } from "@throughline/core/internal";
import type { Config } from "./resolve-config.ts";
import type { Setting } from "./setting-set.ts";

/** A model beside the one that answers. */
export interface HelperModel {
  /** The provider, such as `anthropic` or `ollama`. */
  readonly provider: string;
  /** The model by the provider's own name. */
  readonly modelId: string;
  /** Null: the provider's usual address. */
  readonly baseUrl: string | null;
  /** Null: what the model states. */
  readonly contextTokens: number | null;
  /** For one summary; null: the usual. */
  readonly deadlineMs: number | null;
}

/** What configuration says of a conversation, as the facade and the makers of summaries take it. */
export interface SessionSettings {
  /** When sessions are compacted, and what is kept; holds only what was set. */
  readonly compaction: CompactionSettings & {
    /** Whether a summary is begun beside the turns before compaction is due. @default true */
    readonly background?: boolean;
    /** Whether a checkpoint that covers half of the context replaces a new summary. @default true */
    readonly preferCheckpoint?: boolean;
    /** The time that all summarizers of one compaction may take together, in milliseconds. @default 180_000 */
    readonly deadlineMs?: number;
  };
  /** When checkpoints are made; holds only what was set. */
  readonly checkpoint: CheckpointSettings & {
    /** How long all models asked for one checkpoint may take together. @default 600_000 */
    readonly deadlineMs?: number;
  };
  /** Asked for checkpoints before the model that answers; null: none. */
  readonly checkpointModel: HelperModel | null;
  /** Whether the model that answers writes a checkpoint when the one above could not. */
  readonly checkpointFallsBack: boolean;
  /** Undefined: on where the agent can write files. */
  readonly memoryFlush: MemoryFlushSettings | undefined;
  /** When summaries that no model wrote are made again; holds only what was set. */
  readonly retry: RetryLimits & {
    /** How often they are looked for; 0 switches it off. @default 60 */
    readonly intervalSeconds?: number;
  };
  /** How tool results are shortened where a request does not fit. */
  readonly results: {
    /** What stays of a tool result that is shortened. @default "head-and-tail" */
    readonly keep?: "head" | "head-and-tail";
    /** The largest tool result in percent of the window, at four characters a token. @default by the window */
    readonly resultPercent?: number;
  };
  /** How a model is asked for a summary: under headings, or in prose with a short instruction. */
  readonly summaryStyle: "sections" | "concise";
  /** What a model that writes a summary reads of tool results. */
  readonly summaryToolResults: "marker" | "keep";
  /** The longest message that a model reads uncut for a summary, in characters; null: by its window. */
  readonly summaryMessageChars: number | null;
  /** Asked for summaries before the model that answers, in this order. Nothing goes to a provider that is not named here. */
  readonly summaryModels: readonly HelperModel[];
  /** Whether the model that answers is asked for summaries after those. */
  readonly asksMainModel: boolean;
  /** When a summary model that keeps failing is skipped. */
  readonly breaker: {
    /** After how many failures in a row it is skipped. */
    readonly threshold: number;
    /** How long it is skipped, in milliseconds. */
    readonly resetMs: number;
  };
  /** How turns run. */
  readonly turn: {
    /** The most model calls in one turn. */
    readonly maxSteps: number;
    /** Whether the tools of one reply run at the same time. */
    readonly parallelTools: boolean;
    /** How long a turn may go without a sign of life before another process may take it over. */
    readonly leaseMs: number;
    /** Shares of the window, in percent, at which a prompt is announced before it is sent. */
    readonly warnAtPercents: readonly number[];
    /** Whether an older history that does not fit is summarized, or its oldest turns are left out of requests. */
    readonly restore: "compact" | "cut";
    /** Whether the system prompt ends with a line that says how full the context is. */
    readonly showContextLine: boolean;
  };
  /** Null leaves it to the provider. */
  readonly maxOutputTokens: number | null;
  /** Null: everything may be sent. */
  readonly sendPolicy: SendPolicy | null;
  /** When sessions reset by themselves. */
  readonly reset: ResetPolicy;
  /** Of OpenClaw's functions. */
  readonly cacheTtlMs: number;
  /** The session that a conversation opens where nobody names one; null: the newest of the folder. */
  readonly defaultKey: string | null;
  /** What of another program's sessions is taken over. */
  readonly inherit: {
    /** Null: it is to be asked. */
    readonly enabled: boolean | null;
    /** The directory that holds the other program's sessions. */
    readonly source: string;
    /** The only key that is taken over; null: every session. */
    readonly readKey: string | null;
    /** The key that the session continues under; null: its own. */
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

/** The settings of a configuration, sorted by who uses them. Pure. */
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

  /** Somebody wrote it, or it is used in place of the default. */
  isSet(key: string): boolean {
    const setting = this.#settings.get(key);
    return setting !== undefined && (setting.source !== "default" || setting.given !== undefined);
  }

  /** The members that are set; the package knows what holds for the others. */
  block<Block extends object>(area: string, names: readonly (keyof Block & string)[]): Block {
    const set = names.filter((name) => this.isSet(`${area}.${name}`) && this.of(`${area}.${name}`) !== null);
    return Object.fromEntries(set.map((name) => [name, this.of(`${area}.${name}`)])) as Block;
  }
}

/** Rules take what they leave out from the general one. A written time implies that sessions reset then. */
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

/** A session that is continued under another key is opened under that key. */
function defaultKey(values: Values): string | null {
  const key = values.of("session.defaultKey") as string | null;
  const writeKey = values.of("session.inherit.writeKey") as string | null;
  return key !== null && key === values.of("session.inherit.readKey") ? (writeKey ?? key) : key;
}

/** The line belongs to the memory flush: without a flush only who asks for it by name gets it. */
function showsContextLine(values: Values): boolean {
  const line = values.of("session.turn.showContextLine");
  if (line !== null) return line === true;
  const isMeant = values.isSet("session.memoryFlush.showInSystemPrompt") || memoryFlush(values)?.enabled !== false;
  return isMeant && values.of("session.memoryFlush.showInSystemPrompt") === true;
}

/** Switched off where the agent has no tool to write a file with; otherwise only what was set. */
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
