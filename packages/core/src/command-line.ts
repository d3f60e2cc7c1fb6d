import { shellWord } from "./throughline-error.ts";

/** Returns a line for a shell that runs the command in a folder; an empty or unknown folder is left out. */
export function commandLine(
  cwd: string | null,
  variables: Readonly<Record<string, string>>,
  command: readonly string[],
): string {
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${shellWord(value)}`);
  const words = [...settings, ...command.map(shellWord)].join(" ");
  return cwd === null || cwd === "" ? words : `cd ${shellWord(cwd)} && ${words}`;
}
