import { givenName, listSessions } from "@throughline/core/internal";
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

const mostSessions = 100;
/** The list below the prompt has six rows. Typing narrows it, so no more sessions are read for their first words. */
const mostRead = 6;

/** Lists those of the sessions of the agent that were used last whose keys begin with a text. */
export async function sessionChoices(
  { context, conversation }: ArgumentContext,
  word: string,
): Promise<readonly Choice[]> {
  const { namespace, agentId } = context.scope;
  const { store, ref } = conversation;
  const { signal } = context;
  const choices: Choice[] = [];
  let looked = 0;
  for await (const state of listSessions(store, { namespace, agentId, limit: mostSessions, signal })) {
    if (++looked > mostSessions) break;
    const { key } = state.ref;
    // A key that acts on a terminal is not put into the editor.
    if (key === ref.key || !key.startsWith(word) || terminalSafeLine(key) !== key) continue;
    const isRead = choices.length < mostRead;
    choices.push({ text: key, help: isRead ? await shownName(store, state, signal) : (givenName(state.entry) ?? "") });
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
