import { listSessions } from "@throughline/core/internal";
import type { CommandContext, OptionDefinition } from "../command.ts";
import { shownName } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import type { ReplContext } from "./repl-context.ts";

/** Holds what the completion of arguments reads. */
export type ArgumentContext = Pick<ReplContext, "context" | "conversation">;

export interface Choice {
  readonly text: string;
  readonly help: string;
}

/** The list below the prompt has six rows, and typing narrows it. */
const mostSessions = 100;

/** Lists the sessions of the agent that were used last, by their keys. */
export async function sessionChoices({ context, conversation }: ArgumentContext): Promise<readonly Choice[]> {
  const { namespace, agentId } = context.scope;
  const { store, ref } = conversation;
  const choices: Choice[] = [];
  for await (const state of listSessions(store, { namespace, agentId, limit: mostSessions, signal: context.signal })) {
    if (choices.length >= mostSessions) break;
    // A key that acts on a terminal is not put into the editor.
    if (state.ref.key !== ref.key && terminalSafeLine(state.ref.key) === state.ref.key)
      choices.push({ text: state.ref.key, help: await shownName(store, state, context.signal) });
  }
  return choices;
}

/** Lists the model of this conversation, and those that the help of `chat --model` names. */
export async function modelChoices({ context, conversation }: ArgumentContext): Promise<readonly Choice[]> {
  const usual = optionOf(context, "chat", "--model")?.suggestions ?? [];
  return [...new Set([conversation.chosen.name, ...usual])].map((text) => ({ text, help: "" }));
}

/** Lists the formats of `throughline export`. */
export async function exportChoices({ context }: ArgumentContext): Promise<readonly Choice[]> {
  return exportFormats(context).map((text) => ({ text, help: "" }));
}

export function exportFormats(context: CommandContext): readonly string[] {
  return optionOf(context, "export", "--to")?.choices ?? [];
}

function optionOf({ commands }: CommandContext, command: string, flag: string): OptionDefinition | undefined {
  const options = commands.find(({ name }) => name === command)?.options ?? [];
  return options.find(({ flags }) => flags.startsWith(`${flag} `));
}
