import type { ArgumentContext } from "../repl-arguments.ts";
import type { ReplCommand } from "../repl-commands.ts";

export interface Completion {
  /** Holds the end of the text before the caret that a choice replaces. */
  readonly replaced: string;
  readonly choices: readonly { readonly text: string; readonly help: string }[];
}

/** Returns null where nothing is to be completed. */
export type FindCompletion = (beforeCaret: string) => Promise<Completion | null>;

const mostChoices = 200;
const command = /^\/\S*$/;
const argument = /^\/(\S+)[ \t]+(\S*)$/;
const file = /(?:^|\s)(@(?:"[^"]*|\S*))$/;

type CompletedCommand = Pick<ReplCommand, "name" | "help" | "arguments">;

/** A completion reads the store and the folder. One that fails must not end the chat, so it completes nothing. */
export async function findOrNone(find: FindCompletion, beforeCaret: string): Promise<Completion | null> {
  try {
    return await find(beforeCaret);
  } catch {
    return null;
  }
}

/** Completes `/name` by the commands, the word behind it by what the command takes, and `@name` by the files of the folder. */
export function findCompletion(
  commands: readonly CompletedCommand[],
  listFiles: () => Promise<readonly string[]>,
  repl: ArgumentContext,
): FindCompletion {
  return async (beforeCaret) => {
    if (command.test(beforeCaret)) {
      const choices = commands.filter(({ name }) => `/${name}`.startsWith(beforeCaret));
      return { replaced: beforeCaret, choices: choices.map(({ name, help }) => ({ text: `/${name}`, help })) };
    }
    const [, name = "", word = ""] = argument.exec(beforeCaret) ?? [];
    const all = (await commands.find((each) => each.name === name)?.arguments?.(repl, word)) ?? [];
    const wanted = all.filter(({ text }) => text.startsWith(word));
    if (wanted.length > 0) return { replaced: word, choices: wanted.slice(0, mostChoices) };
    const replaced = file.exec(beforeCaret)?.[1];
    if (replaced === undefined) return null;
    const names = bestNames(await listFiles(), replaced.slice(replaced[1] === '"' ? 2 : 1));
    return { replaced, choices: names.map((name) => ({ text: mention(name), help: "" })) };
  };
}

/** Paths that start with the text come first, then file names that do, then paths that contain it. */
function bestNames(names: readonly string[], typed: string): readonly string[] {
  const wanted = typed.toLowerCase();
  const ranks = [
    (path: string): boolean => path.startsWith(wanted),
    (path: string): boolean => path.slice(path.lastIndexOf("/") + 1).startsWith(wanted),
    (path: string): boolean => path.includes(wanted),
  ];
  for (const isBest of ranks) {
    const best = names.filter((name) => isBest(name.toLowerCase()));
    if (best.length > 0) return best.slice(0, mostChoices);
  }
  return [];
}

function mention(name: string): string {
  return /\s/.test(name) ? `@"${name}"` : `@${name}`;
}

export function commonStart(texts: readonly string[]): string {
  let shared = texts[0] ?? "";
  for (const text of texts) while (!text.startsWith(shared)) shared = shared.slice(0, -1);
  return shared.toWellFormed() === shared ? shared : shared.slice(0, -1);
}
