import { realpathSync } from "node:fs";
import { delimiter, join } from "node:path";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import { commandPackage, shellWord } from "@throughline/core/internal";

export interface StartedBy {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nodeArguments: readonly string[];
  /** The path is absolute. */
  readonly program: string;
}

/** Returns the command that starts this program here. It is never `npx throughline`, which is another project. */
export function ownCommandName({ environment, nodeArguments, program }: StartedBy): string {
  // A checkout runs the program by a script. `npm start` would work too, but npm prints its own lines before the
  // output.
  const script = environment["npm_lifecycle_event"];
  const isCheckout = script === "start" && environment["npm_package_name"] === "throughline-workspace";
  if (script === "throughline" || isCheckout) return "npm run -s throughline --";
  const isPnpm = environment["npm_config_user_agent"]?.startsWith("pnpm") === true;
  if (environment["npm_command"] === "exec") return isPnpm ? "pnpm exec throughline" : `npx ${commandPackage}`;
  if (isOnPath(environment["PATH"] ?? "", program)) return "throughline";
  return ["node", ...nodeArguments, program].map(shellWord).join(" ");
}

/** True if the name leads to this program: by a link, or by a package manager's script that names it. */
function isOnPath(path: string, program: string): boolean {
  for (const folder of path.split(delimiter)) {
    try {
      const file = join(folder, "throughline");
      const text = readBoundedFile(file, { what: "program", mostBytes: mostFileBytes });
      return realpathSync(file) === realpathSync(program) || text.includes(commandPackage);
    } catch {
      // The folder has no such file, so the next one is tried.
    }
  }
  return false;
}

/** Holds an option that selects the store or the sessions, with its value. */
export type GivenOption = readonly [name: string, value: string];

/**
 * Rewrites every Throughline command between backticks so that it works where it is printed. It gets the name that
 * starts this program, and the store that the command used.
 */
export function asTyped(text: string, name: () => string, given: readonly GivenOption[]): string {
  return text.replace(/`throughline( [^`]*)?`/g, (_all, rest: string | undefined) => {
    const line = rest ?? "";
    const isHelp = line.includes("--help");
    const missing = given.filter(([option]) => !isHelp && line !== "" && !line.includes(option));
    return `\`${name()}${line}${missing.map(([option, value]) => ` ${option} ${shellWord(value)}`).join("")}\``;
  });
}
