import { realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import { commandPackage, shellWord } from "@throughline/core/internal";

/** How this process was started, as far as it decides what has to be typed to start it again. */
export interface StartedBy {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of Node itself. */
  readonly nodeArguments: readonly string[];
  /** The program's file, absolute. */
  readonly program: string;
}

/** What has to be typed to run this program, here: never `npx throughline`, which is another project. */
export function ownCommandName({ environment, nodeArguments, program }: StartedBy): string {
  // A script of a checkout. Its `npm start` takes commands as well, but npm prints lines of its own before their output.
  const script = environment["npm_lifecycle_event"];
  const isCheckout = script === "start" && environment["npm_package_name"] === "throughline-workspace";
  if (script === "throughline" || isCheckout) return "npm run -s throughline --";
  const isPnpm = environment["npm_config_user_agent"]?.startsWith("pnpm") === true;
  if (environment["npm_command"] === "exec") return isPnpm ? "pnpm exec throughline" : `npx ${commandPackage}`;
  if (isOnPath(environment["PATH"] ?? "", program)) return "throughline";
  return ["node", ...nodeArguments, program].map(shellWord).join(" ");
}

/** Whether the name leads to this program: by a link, or by a short script of a package manager that names it. */
function isOnPath(path: string, program: string): boolean {
  for (const folder of path.split(delimiter)) {
    try {
      const file = join(folder, "throughline");
      const text = readBoundedFile(file, { what: "program", mostBytes: mostFileBytes });
      return realpathSync(file) === realpathSync(program) || text.includes(commandPackage);
    } catch {
      // Not in this folder: the next one.
    }
  }
  return false;
}

/** Options that decide which store and whose sessions a command means; `name` is the option, `value` what was given. */
export type GivenOption = readonly [name: string, value: string];

/**
 * Rewrites every command of ours in a text, between backticks, so that it works where it is printed. It gets the name
 * that starts this program, and the store that the failed or finished command used.
 */
export function asTyped(text: string, name: () => string, given: readonly GivenOption[]): string {
  return text.replace(/`throughline( [^`]*)?`/g, (_all, rest: string | undefined) => {
    const line = rest ?? "";
    const isHelp = line.includes("--help");
    const missing = given.filter(([option]) => !isHelp && line !== "" && !line.includes(option));
    return `\`${name()}${line}${missing.map(([option, value]) => ` ${option} ${shellWord(value)}`).join("")}\``;
  });
}
