import { sessionsTable } from "../option-tables.ts";
import {
  assertKnownOptions,
  optionKinds,
  portKinds,
  type OptionKind,
  type OptionTable,
} from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { checkFlushSettings } from "@throughline/compaction/internal";
import type { AgentSessionsOptions } from "./whole-turn-options.ts";

interface Problem {
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
}

const { callback, flag, list, listOf, object, objectOf, objectWith, orNull, required, text } = optionKinds;

// The range of a number is checked below, so that CONFIG_INVALID reports all problems at once.
const anyNumber: OptionKind = { expected: "a number", accepts: (value) => typeof value === "number" };

const {
  compact: _compact,
  beforeClose: _beforeClose,
  holdBack: _holdBack,
  onEvent: _onEvent,
  ...shared
} = sessionsTable;

export const agentSessionsTable: OptionTable<AgentSessionsOptions> = {
  ...shared,
  summarizers: required(listOf(portKinds.summarizer)),
  extractive: orNull(portKinds.summarizer),
  breakers: objectWith("status"),
  compaction: objectOf<NonNullable<AgentSessionsOptions["compaction"]>>({
    inAdvance: flag,
    reserveTokens: anyNumber,
    reserveFloorTokens: anyNumber,
    maxMessages: anyNumber,
    keepPercent: anyNumber,
    emergencyKeepPercent: anyNumber,
    minMessages: anyNumber,
    keepRecentTokens: anyNumber,
    mostKeptPercent: anyNumber,
    maxSummaryTokens: anyNumber,
    maxDetailTokens: anyNumber,
    toolResultChars: anyNumber,
    preferCheckpoint: flag,
    background: flag,
    backgroundPercent: anyNumber,
    deadlineMs: anyNumber,
    memorySearchTool: orNull(text),
  }),
  checkpoint: objectOf<NonNullable<AgentSessionsOptions["checkpoint"]>>({
    enabled: flag,
    tokenThresholdPercents: list,
    turnThreshold: anyNumber,
    minTokensForGen: anyNumber,
    writers: listOf(objectWith("write")),
    deadlineMs: anyNumber,
    topicChanged: callback,
  }),
  memoryFlush: object,
  retry: objectOf<NonNullable<AgentSessionsOptions["retry"]>>({
    intervalSeconds: anyNumber,
    maxAttempts: anyNumber,
    firstDelayMs: anyNumber,
    maxDelayMs: anyNumber,
  }),
  showContextLine: flag,
  ids: portKinds.ids,
  onEvent: callback,
};

/** Events identify the built-in steps by these names, so other steps must not use them. */
const stepNames: readonly string[] = ["memory-flush", "compaction", "checkpoint"];

type Check = (options: AgentSessionsOptions) => readonly Problem[];

/**
 * Refuses settings that are out of range, and combinations that could have no effect.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an unknown option or another type; CONFIG_INVALID with all
 *   problems in its details
 */
export function checkOptions(options: AgentSessionsOptions): void {
  assertKnownOptions<AgentSessionsOptions>("createAgentSessions", options, agentSessionsTable);
  const problems = checks.flatMap((check) => check(options));
  if (problems.length === 0) return;
  const told = problems.map(({ key, value, allowed }) => `${key} is ${shown(value)}; allowed is ${allowed}`);
  throw new ThroughlineError("CONFIG_INVALID", `${told.join(". ")}.`, { details: { problems } });
}

const checks: readonly Check[] = [numbers, flush, checkpoint, retry, titles, steps];

const ranges: Readonly<Record<string, readonly [number, number]>> = {
  "compaction.reserveTokens": [0, 10_000_000],
  "compaction.reserveFloorTokens": [0, 10_000_000],
  "compaction.maxMessages": [5, 1_000_000],
  "compaction.keepPercent": [0, 90],
  "compaction.emergencyKeepPercent": [0, 90],
  "compaction.minMessages": [0, 10_000],
  "compaction.keepRecentTokens": [0, 10_000_000],
  "compaction.mostKeptPercent": [5, 90],
  "compaction.maxSummaryTokens": [100, 1_000_000],
  "compaction.maxDetailTokens": [0, 1_000_000],
  "compaction.toolResultChars": [100, 1_000_000],
  "compaction.backgroundPercent": [10, 100],
  "compaction.deadlineMs": [1, 86_400_000],
  "checkpoint.turnThreshold": [1, 100_000],
  "checkpoint.minTokensForGen": [0, 10_000_000],
  "checkpoint.deadlineMs": [1, 86_400_000],
  "retry.intervalSeconds": [0, 86_400],
  "retry.maxAttempts": [1, 1000],
  "retry.firstDelayMs": [1, 86_400_000],
  "retry.maxDelayMs": [1, 604_800_000],
};

function numbers(options: AgentSessionsOptions): readonly Problem[] {
  return Object.entries(ranges).flatMap(([key, [least, most]]) => {
    const [block = "", field = ""] = key.split(".");
    // The table names the options, and their interface has no index signature.
    const given = (options as unknown as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>)[
      block
    ];
    const value = given?.[field];
    const isGood = value === undefined || (Number.isFinite(value) && Number(value) >= least && Number(value) <= most);
    return isGood ? [] : [{ key, value, allowed: `a number from ${least} to ${most}` }];
  });
}

function flush({ memoryFlush, tools = [] }: AgentSessionsOptions): readonly Problem[] {
  if (memoryFlush === undefined || memoryFlush.enabled === false) return [];
  const problems: Problem[] = [...checkFlushSettings(memoryFlush)];
  if (memoryFlush.thresholds?.length === 0) {
    problems.push({ key: "memoryFlush.thresholds", value: [], allowed: "at least one, or memoryFlush.enabled false" });
  }
  if (tools.length === 0) {
    const allowed = "false for an agent without tools: it has nothing to write a file with";
    problems.push({ key: "memoryFlush.enabled", value: true, allowed });
  }
  return problems;
}

function checkpoint({ checkpoint: given = {}, compaction = {} }: AgentSessionsOptions): readonly Problem[] {
  const { tokenThresholdPercents: percents = [], writers, enabled, topicChanged } = given;
  const problems: Problem[] = percents
    .filter((percent) => !(percent > 0 && percent < 100))
    .map((value) => ({ key: "checkpoint.tokenThresholdPercents", value, allowed: "numbers above 0 and below 100" }));
  if (enabled === true && writers?.length === 0) {
    problems.push({ key: "checkpoint.writers", value: writers, allowed: "at least one, or checkpoint.enabled false" });
  }
  if (
    topicChanged !== undefined &&
    (typeof topicChanged !== "function" || enabled === false || writers?.length === 0)
  ) {
    const allowed = "a function, where checkpoint.enabled is not false and there are checkpoint.writers";
    problems.push({ key: "checkpoint.topicChanged", value: topicChanged, allowed });
  }
  if (compaction.preferCheckpoint === true && enabled === false) {
    const allowed = "false where checkpoint.enabled is false: there is none to prefer";
    problems.push({ key: "compaction.preferCheckpoint", value: true, allowed });
  }
  return problems;
}

function retry({ retry: given, summarizers }: AgentSessionsOptions): readonly Problem[] {
  const interval = given?.intervalSeconds ?? 0;
  if (interval === 0 || summarizers.length > 0) return [];
  const allowed = "0 without summarizers: none would write a better summary";
  return [{ key: "retry.intervalSeconds", value: interval, allowed }];
}

function titles({ titles: given, summarizers }: AgentSessionsOptions): readonly Problem[] {
  if (given !== "model" || summarizers.length > 0) return [];
  return [{ key: "titles", value: given, allowed: '"rules" or "off" without summarizers: none would write a title' }];
}

function steps({ steps: given = [] }: AgentSessionsOptions): readonly Problem[] {
  return given
    .filter(({ name }) => stepNames.includes(name))
    .map(({ name }) => ({ key: "steps", value: name, allowed: `other names than ${stepNames.join(", ")}` }));
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
