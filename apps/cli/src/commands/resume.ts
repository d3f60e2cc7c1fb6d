import { ThroughlineError } from "@throughline/core";
import { commandLine, givenName, quote, resolveSession, sessionName, shellWord } from "@throughline/core/internal";
import { planResume, type ResumePlan } from "@throughline/transfer/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { startProgram } from "../start-program.ts";

/** Continues a session in the program that it came from; a session that began here continues in `chat`. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output, scope, signal } = context;
  const isRun = input.options["run"] === true;
  if (isRun && output.isJson) throw usageError("--json prints the command, and --run runs it: give one of them.");
  const store = await context.openStore("read");
  const state = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const { key } = state.ref;
  const plan = await planResume(state);
  if (plan !== null) noteDifferences(context, plan);
  if (isRun) return plan === null ? await chat(context, key) : await runPlan(context, plan);
  const command =
    plan === null
      ? output.asTyped(`\`throughline chat --key ${shellWord(key)}\``).slice(1, -1)
      : commandLine(plan.cwd, {}, plan.command);
  if (output.isJson)
    await output.object({
      kind: "resume",
      key,
      sessionId: plan?.sessionId ?? state.sessionId,
      name: sessionName(state),
      program: plan?.format ?? null,
      path: plan?.path ?? null,
      cwd: plan?.cwd ?? null,
      isFolderThere: plan?.isFolderThere ?? true,
      isContinuedHere: plan?.isContinuedHere ?? false,
      command,
    });
  else {
    output.note(`This resumes ${quote(givenName(state.entry) ?? key)}.`);
    await output.line(command);
  }
  return 0;
}

function noteDifferences({ output }: CommandContext, { cwd, isFolderThere, isContinuedHere }: ResumePlan): void {
  if (isContinuedHere) output.note("The session was continued here, and its own file lacks that.");
  if (!isFolderThere) output.note(`The session's folder does not exist: ${cwd ?? ""}.`);
}

async function chat(context: CommandContext, key: string): Promise<number> {
  const { run: runChat } = await import("./chat.ts");
  return await runChat(context, { arguments: [], options: { key } });
}

async function runPlan(context: CommandContext, { command, cwd, isFolderThere }: ResumePlan): Promise<number> {
  if (!isFolderThere && cwd !== null) {
    throw new ThroughlineError("FILE_NOT_FOUND", `The session works in ${quote(cwd)}, which is no folder here.`, {
      outcome: "not-applied",
      details: { cwd },
      remedy: `Create the folder, or leave out --run to see the command.`,
    });
  }
  return await startProgram(context, command, cwd ?? context.host.workingDirectory);
}
