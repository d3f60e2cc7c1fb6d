import type { CommandContext, CommandDefinition, CommandInput, OptionDefinition } from "../command.ts";
import { openStore } from "../open-store.ts";
import { globalOptions } from "../program.ts";
import { listSessions, sessionLabel } from "@throughline/core/internal";
import { entryFieldNames } from "../entry-fields.ts";
import { terminalSafeLine } from "../terminal-safe.ts";

/** Limits the sessions that a completion reads, because the shell waits for it. */
const mostSessions = 500;

/** Reads only the session index and no transcript, because the shell waits for the words. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const words = input.arguments;
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const found = await candidates(context, before, typed);
  for (const word of new Set(found)) if (word.startsWith(typed)) await context.output.line(word);
  return 0;
}

async function candidates(
  context: CommandContext,
  before: readonly string[],
  typed: string,
): Promise<readonly string[]> {
  const { commands } = context;
  const visible = commands.filter(({ isHidden }) => isHidden !== true);
  const command = commandOf(commands, before);
  const options = [...(command?.options ?? []), ...globalOptions];
  const asked = options.find((option) => longName(option) === before.at(-1));
  if (asked !== undefined && takesValue(asked)) return asked.choices ?? asked.suggestions ?? [];
  if (typed.startsWith("-")) return [...options.map(longName), "--help"];
  if (command === undefined) return visible.map(({ name }) => name);
  if (command.name === "config") return context.settings.map(({ key }) => key);
  if (command.name === "completion") return ["bash", "zsh", "fish"];
  if (command.name === "entry" && operandsAfter(commands, before, options) === 1) return ["get", "set", "unset"];
  if (command.name === "entry" && operandsAfter(commands, before, options) === 2) return entryFieldNames();
  const wantsKey = /key/.test(command.arguments[0]?.name ?? "") && operandsAfter(commands, before, options) === 0;
  if (wantsKey) return await sessionNames(context, before);
  return command.name === "restore" && asked !== undefined ? await sessionNames(context, before) : [];
}

type Commands = CommandContext["commands"];

function commandOf(commands: Commands, words: readonly string[]): CommandDefinition | undefined {
  return words.flatMap((word) => commands.find(({ name }) => name === word) ?? [])[0];
}

function operandsAfter(commands: Commands, words: readonly string[], options: readonly OptionDefinition[]): number {
  const at = words.findIndex((word) => commands.some(({ name }) => name === word));
  return words.slice(at + 1).filter((word, index, rest) => {
    const earlier = options.find((option) => longName(option) === rest[index - 1]);
    return !word.startsWith("-") && !(earlier !== undefined && takesValue(earlier));
  }).length;
}

/**
 * Returns keys and labels, newest first. An unreadable store yields no words, because a completion must not print
 * errors.
 */
async function sessionNames(context: CommandContext, before: readonly string[]): Promise<readonly string[]> {
  const { host, scope, signal, tokenPlaces } = context;
  const url = before[before.indexOf("--store") + 1];
  const agentId = before.includes("--agent") ? before[before.indexOf("--agent") + 1] : scope.agentId;
  const names: string[] = [];
  const exact: string[] = [];
  try {
    const isNamed = before.includes("--store") && url !== undefined;
    const options = { workingDirectory: host.workingDirectory, create: false, tokenPlaces };
    await using own = isNamed ? await openStore(url, options) : null;
    const store = own ?? (await context.openStore("read"));
    const query = {
      namespace: scope.namespace,
      ...(agentId === undefined ? {} : { agentId }),
      limit: mostSessions,
      signal,
    };
    for await (const { ref, entry } of listSessions(store, query)) {
      exact.push(terminalSafeLine(ref.key));
      const label = sessionLabel(entry);
      // A label with white space or quotes would not be a single shell word.
      if (label !== null && /^[\p{L}\p{N}._:-]+$/u.test(label)) names.push(label);
      if (exact.length >= mostSessions) break;
    }
  } catch {
    return [];
  }
  return [...exact, ...names];
}

function longName({ flags }: OptionDefinition): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? "";
}

function takesValue({ flags }: OptionDefinition): boolean {
  return flags.includes("<");
}
