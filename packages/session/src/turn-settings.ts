import type { AgentTool, ToolDefinition } from "@throughline/core";
import type { SendPolicy } from "@throughline/policy";
import type { ResultSettings } from "@throughline/guard/internal";
import type { RunTurnOptions } from "./turn.ts";
import type { HoldBack } from "./held-deltas.ts";
import type {
  ApproveTool,
  BeforeClose,
  CompactSession,
  SessionModel,
  SessionsOptions,
  SystemPrompt,
  TurnStep,
} from "./session-options.ts";

export interface ToolSet {
  readonly byName: ReadonlyMap<string, AgentTool>;
  readonly definitions: readonly ToolDefinition[];
}

/** Holds the options of a turn with all defaults filled in. */
export interface TurnSettings {
  readonly model: SessionModel;
  readonly system: SystemPrompt;
  readonly tools: ToolSet;
  readonly maxSteps: number;
  readonly isParallel: boolean;
  readonly approveTool: ApproveTool | null;
  readonly asksInParallel: boolean;
  readonly leaseMs: number;
  readonly steps: readonly TurnStep[];
  readonly compact: CompactSession | null;
  readonly restore: "cut" | "compact";
  readonly results: ResultSettings | null;
  readonly beforeClose: BeforeClose | null;
  readonly holdBack: HoldBack | null;
  readonly warnAtPercents: readonly number[];
  readonly sendPolicy: SendPolicy | null;
}

const sets = new WeakMap<readonly AgentTool[], ToolSet>();
const none: ToolSet = { byName: new Map(), definitions: [] };

/** The same list of tools returns the same object, so that the hash of the tools is computed once. */
export function toolSet(tools: readonly AgentTool[] | undefined): ToolSet {
  if (tools === undefined || tools.length === 0) return none;
  const known = sets.get(tools);
  if (known !== undefined) return known;
  const made: ToolSet = {
    byName: new Map(tools.map((tool) => [tool.definition.name, tool])),
    definitions: tools.map(({ definition }) => definition),
  };
  sets.set(tools, made);
  return made;
}

const usualWarnings: readonly number[] = [90];

export function turnSettings(model: SessionModel, options: SessionsOptions, turn: RunTurnOptions): TurnSettings {
  return {
    model: turn.model ?? model,
    system: turn.system === undefined ? (options.system ?? null) : turn.system,
    tools: toolSet(turn.tools ?? options.tools),
    maxSteps: turn.maxSteps ?? options.maxSteps ?? 50,
    isParallel: options.parallelTools ?? true,
    approveTool: options.approveTool ?? null,
    asksInParallel: options.approvals === "parallel",
    leaseMs: turn.leaseMs ?? options.leaseMs ?? 30_000,
    steps: options.steps ?? [],
    compact: options.compact ?? null,
    restore: options.restore ?? (options.compact === undefined ? "cut" : "compact"),
    results: options.results ?? null,
    beforeClose: options.beforeClose ?? null,
    holdBack: options.holdBack ?? null,
    warnAtPercents: options.warnAtPercents ?? usualWarnings,
    sendPolicy: options.sendPolicy ?? null,
  };
}
