import type { AgentTool, ToolDefinition } from "@throughline/core";
import type { JsonObjectSchema, ToolChoice } from "@throughline/core/internal";
import type { SendPolicy } from "@throughline/policy";
import type { ResultSettings } from "@throughline/guard/internal";
import type { CallFacts } from "./call-record.ts";
import { assertToolChoice } from "./tool-choice.ts";
import { readOutputSchema } from "./output-schema.ts";
import { TurnOutput } from "./turn-output.ts";
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
  /** Applies to the first step, unless it is `none`. */
  readonly toolChoice: ToolChoice;
  /** Takes the structured answer; null when the turn answers in text. */
  readonly output: TurnOutput | null;
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
  readonly titles: "rules" | "model" | "off";
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

/**
 * Fills in the defaults of a turn.
 *
 * @param recorded the last call of the turn that is resumed; its answer has the form that this call asked for
 * @throws {ThroughlineError} INPUT_INVALID, CAPABILITY_UNSUPPORTED
 */
export function turnSettings(
  model: SessionModel,
  options: SessionsOptions,
  turn: RunTurnOptions,
  recorded: CallFacts | null = null,
): TurnSettings {
  const { tools: given = options.tools ?? [], model: asked = model } = turn;
  const toolChoice = turn.toolChoice ?? (recorded?.outcome === "answered" ? undefined : recorded?.toolChoice) ?? "auto";
  assertToolChoice(toolChoice, asked, given);
  const output = outputOf(turn, recorded, { model: asked, tools: toolChoice === "none" ? [] : given });
  const answer = output?.tool ?? null;
  return {
    model: asked,
    system: turn.system === undefined ? (options.system ?? null) : turn.system,
    tools: toolSet(answer === null ? given : [...given, answer]),
    toolChoice,
    output,
    maxSteps: turn.maxSteps ?? options.maxSteps ?? 50,
    isParallel: options.parallelTools ?? true,
    approveTool: approvalOf(options.approveTool, answer),
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
    titles: options.titles ?? "rules",
  };
}

function outputOf(
  { output }: RunTurnOptions,
  recorded: CallFacts | null,
  place: { readonly model: SessionModel; readonly tools: readonly AgentTool[] },
): TurnOutput | null {
  const asked = output ?? (recorded?.output?.schema as JsonObjectSchema | undefined);
  return asked === undefined ? null : new TurnOutput({ ...place, schema: readOutputSchema(asked) });
}

/** The tool that takes the answer has no effect that a person could decide on. */
function approvalOf(approveTool: ApproveTool | undefined, answer: AgentTool | null): ApproveTool | null {
  if (approveTool === undefined) return null;
  if (answer === null) return approveTool;
  return (call, context) => (call.name === answer.definition.name ? "unasked" : approveTool(call, context));
}
