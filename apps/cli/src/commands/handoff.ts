import type { SessionState, SessionStore } from "@throughline/core";
import { commandLine, resolveSession, sessionName } from "@throughline/core/internal";
import { ExportLosses, type ExportRemark, handOff, type HandOffTarget } from "@throughline/transfer/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { lossTexts } from "../export-losses.ts";

const findingsExitCode = 3;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { scope, signal } = context;
  const { to } = input.options as { readonly to?: HandOffTarget };
  const [name = ""] = input.arguments;
  if (to === undefined) throw usageError("handoff needs the program: --to PROGRAM.");
  const store = await context.openStore("read");
  const state = await resolveSession(store, name, scope, { signal });
  return await handOffSession(context, store, state, to);
}

/** Writes the session for the program, and prints what is left out and the command that resumes it there. */
export async function handOffSession(
  context: CommandContext,
  store: SessionStore,
  state: SessionState,
  to: HandOffTarget,
): Promise<number> {
  const { host, output, signal } = context;
  const { ref } = state;
  const losses = new ExportLosses();
  const onRemark = (remark: ExportRemark): void => void losses.take(remark);
  const { environment, userHome, workingDirectory } = host;
  const written = await handOff(store, ref, { to, environment, userHome, workingDirectory, onRemark, signal });
  const { key, sessionId, path, cwd, records, sizeBytes, variables, command, isCopy, copiedBecause, isNoted } = written;
  for (const text of lossTexts(losses)) output.note(text);
  if (copiedBecause?.why === "source-missing")
    output.note(`The session's own file is missing: ${copiedBecause.path}. A copy was written.`);
  if (copiedBecause?.why === "continued-here")
    output.note(
      `The session was continued here, and its own file lacks that: ${copiedBecause.path}. A copy was written.`,
    );
  if (isCopy && !isNoted)
    output.note(
      `The session cannot be changed, so its hand-off is not noted: an import of ${path} makes a second session.`,
    );
  const line = commandLine(cwd, variables, command);
  if (output.isJson)
    await output.object({
      kind: "handoff",
      key,
      sessionId,
      name: sessionName(state),
      format: to,
      path,
      cwd,
      records,
      sizeBytes,
      isCopy,
      command: line,
    });
  else await output.line(isCopy ? `${path}\n${line}` : line);
  return losses.isConversationLeftOut ? findingsExitCode : 0;
}
