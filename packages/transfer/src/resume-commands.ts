import type { SessionState } from "@throughline/core";
import { agentOfKey, commandLine, shellWord } from "@throughline/core/internal";
import type { HandOffTarget } from "./hand-off.ts";
import { receiptOf } from "./import-receipt.ts";
import { isSubAgent, resumeWords } from "./resume-session.ts";

/** Lists the programs that can continue a session, in the order in which they are offered. */
export const handOffTargets: readonly HandOffTarget[] = ["claude-code", "codex", "gemini", "pi", "openclaw"];

/** Holds the commands that continue a session. Each is one line for a shell, with quoted arguments. */
export interface ResumeCommands {
  /** Holds the command of the program that the session came from; null for one that has none. */
  readonly own: {
    readonly program: string;
    readonly command: string;
    readonly cwd: string | null;
    /** Names the program's own file. */
    readonly path: string;
    /** Names the program that the command starts. */
    readonly executable: string;
  } | null;
  /** Continues the session here: an import in a fork. */
  readonly here: string;
  readonly handOff: readonly { readonly to: HandOffTarget; readonly command: string }[];
}

/** Returns the commands that continue a session. It looks at no file: the program's own may be missing. */
export function resumeCommands(state: SessionState): ResumeCommands {
  const { ref, sessionId, archived } = state;
  // A key that names no agent is one of the default agent's, unless the command says another.
  const agent = agentOfKey(ref.key) === null && ref.agentId !== "main" ? ["--agent", shellWord(ref.agentId)] : [];
  const command = (name: string, ...words: readonly string[]): string =>
    ["throughline", name, ...agent, ...words].join(" ");
  const name = shellWord(archived ? sessionId : ref.key);
  // A key that begins with a hyphen would be read as an option.
  const argument = name.startsWith("-") ? `-- ${name}` : name;
  const here = archived ? command("restore", argument) : command("chat", `--key=${name}`);
  const handOff = handOffTargets.map((to) => ({ to, command: command("handoff", "--to", to, argument) }));
  return { own: ownCommand(state), here, handOff };
}

function ownCommand({ entry }: SessionState): ResumeCommands["own"] {
  const receipt = receiptOf(entry);
  const words = receipt === null || isSubAgent(receipt, entry) ? null : resumeWords(receipt);
  const executable = words?.[0];
  if (receipt === null || words === null || executable === undefined) return null;
  const cwd = typeof entry.cwd === "string" && entry.cwd !== "" ? entry.cwd : null;
  return { program: receipt.format, command: commandLine(cwd, {}, words), cwd, path: receipt.path, executable };
}
