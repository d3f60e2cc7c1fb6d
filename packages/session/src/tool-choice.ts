import { ThroughlineError, type AgentTool } from "@throughline/core";
import { choiceName, type ToolChoice } from "@throughline/core/internal";
import type { SessionModel } from "./session-options.ts";
import type { TurnOutput } from "./turn-output.ts";

/** @throws {ThroughlineError} CAPABILITY_UNSUPPORTED, INPUT_INVALID */
export function assertToolChoice(choice: ToolChoice, { chat }: SessionModel, tools: readonly AgentTool[]): void {
  const name = choiceName(choice);
  if (name === null) return;
  if (chat.toolChoices?.includes(name) !== true) {
    const shown = typeof choice === "object" ? "{ tool }" : JSON.stringify(choice);
    const message = `The provider ${JSON.stringify(chat.provider)} (${chat.api}) does not have \`toolChoice: ${shown}\`.`;
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", message, {
      outcome: "not-applied",
      details: { argument: "toolChoice", provider: chat.provider, accepted: ["auto", ...(chat.toolChoices ?? [])] },
      remedy: "Leave `toolChoice` out and pass only the `tools` that the turn may call, or use another provider.",
    });
  }
  if (choice === "none") return;
  const names = tools.map(({ definition }) => definition.name);
  const isKnown = typeof choice === "object" ? names.includes(choice.tool) : names.length > 0;
  if (isKnown) return;
  const problem = typeof choice === "object" ? `There is no tool ${JSON.stringify(choice.tool)}` : "There are no tools";
  throw new ThroughlineError("INPUT_INVALID", `runTurn(): ${problem} for \`toolChoice\`.`, {
    outcome: "not-applied",
    details: { argument: "toolChoice", tools: names },
    remedy: "Name a tool of `tools`.",
  });
}

interface StepChoiceOptions {
  readonly toolChoice: ToolChoice;
  readonly output: TurnOutput | null;
  readonly model: SessionModel;
  /** Counts the steps of the turn, from 1. */
  readonly step: number;
}

/**
 * Returns the choice of one step. A forced choice holds for the first step only: a model that must call a tool in every
 * step never ends. A tool that takes the answer ends the turn, so its steps stay forced.
 */
export function stepChoice({ toolChoice, output, model, step }: StepChoiceOptions): ToolChoice {
  const choice = step > 1 && toolChoice !== "none" ? "auto" : toolChoice;
  if (output === null || output.tool === null) return choice;
  const accepts = (name: "required" | "tool"): boolean => model.chat.toolChoices?.includes(name) === true;
  // The other tools are not to be called, and the answer is.
  if (choice === "none") return accepts("tool") ? { tool: output.recorded.name } : "auto";
  return choice === "auto" && accepts("required") ? "required" : choice;
}
