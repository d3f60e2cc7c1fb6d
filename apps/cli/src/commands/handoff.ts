import { resolveSession } from "@throughline/queries";
import { shellWord } from "@throughline/core/internal";
import { handOff, type ExportRemark, type HandOffTarget } from "@throughline/transfer";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { ExportLosses } from "../export-losses.ts";

const findingsExitCode = 3;

/** Writes a session where another program finds it, and prints the command that resumes it there. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { host, output, scope, signal } = context;
  const { to } = input.options as { readonly to?: HandOffTarget };
  const [name = ""] = input.arguments;
  if (to === undefined) throw usageError("handoff needs the program: --to PROGRAM.");
  const store = await context.openStore("read");
  const { ref } = await resolveSession(store, name, scope, { signal });
  const losses = new ExportLosses();
  const onRemark = (remark: ExportRemark): void => void losses.take(remark);
  const { environment, userHome, workingDirectory } = host;
  const written = await handOff(store, ref, { to, environment, userHome, workingDirectory, onRemark, signal });
  const { key, sessionId, path, cwd, records, sizeBytes, variables, command } = written;
  for (const text of losses.texts()) output.note(text);
  const line = commandLine(cwd, variables, command);
  if (output.isJson)
    await output.object({ kind: "handoff", key, sessionId, format: to, path, cwd, records, sizeBytes, command: line });
  else await output.line(`${path}\n${line}`);
  return losses.isConversationLeftOut ? findingsExitCode : 0;
}

function commandLine(cwd: string, variables: Readonly<Record<string, string>>, command: readonly string[]): string {
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${shellWord(value)}`);
  const words = [...settings, ...command.map(shellWord)].join(" ");
  return cwd === "" ? words : `cd ${shellWord(cwd)} && ${words}`;
}
