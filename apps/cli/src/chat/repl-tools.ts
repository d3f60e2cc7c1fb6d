import type { CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { openStoreUsage } from "../usage/usage-file.ts";
import { totalCells, usageColumns } from "../usage/usage-table.ts";
import { exportFormats } from "./repl-arguments.ts";
import type { ReplContext } from "./repl-context.ts";

/** Handles `/search` as `throughline search` does. */
export async function searchAll(repl: ReplContext, argument: string): Promise<void> {
  if (argument === "") throw usageError("/search needs words: /search login bug.");
  const { run } = await import("../commands/search.ts");
  await interruptible(repl, run, { arguments: [argument], options: {} });
}

/** Handles `/open`: a numbered hit of the last search with the records around it. */
export async function openHit(repl: ReplContext, argument: string): Promise<void> {
  const { run } = await import("../commands/open.ts");
  await interruptible(repl, run, { arguments: [argument], options: {} });
}

/** Handles `/export [FORMAT] [PATH]` as `throughline export` does: Markdown without a format, and nothing is overwritten. */
export async function exportCurrent(repl: ReplContext, argument: string): Promise<void> {
  const { ref, session } = repl.conversation;
  if (session === null) return repl.context.output.line("There are no messages yet.");
  const [word = ""] = argument.split(/\s/, 1);
  const hasFormat = /^[a-z0-9-]+$/.test(word);
  const to = hasFormat ? word : "markdown";
  const path = (hasFormat ? argument.slice(word.length) : argument).trim();
  const formats = exportFormats(repl.context);
  if (!formats.includes(to))
    throw usageError(`/export has no format ${JSON.stringify(to)}. Formats: ${formats.join(", ")}.`);
  const { run } = await import("../commands/export.ts");
  await interruptible(repl, run, { arguments: [ref.key], options: { to, output: path === "" ? "." : path } });
}

/** Handles `/usage`: tokens and cost of this session by model, as `throughline usage` counts them. */
export async function showUsage({ context, conversation }: ReplContext): Promise<void> {
  const { output, scope, signal } = context;
  const { session, store, ref } = conversation;
  if (session === null) return output.line("There are no messages yet.");
  const { sessionId } = session;
  const reader = openStoreUsage(context, store);
  try {
    const isWanted = (row: { readonly sessionId: string }): boolean => row.sessionId === sessionId;
    const query = { by: ["model"], namespace: scope.namespace, agentId: ref.agentId, isWanted, signal } as const;
    const { rows, total } = await reader.report(query);
    const cells = rows.map((row) => [row.group.model ?? "?", ...totalCells(row)]);
    await output.table(usageColumns(["MODEL"]), [...cells, ["total", ...totalCells(total)]]);
  } finally {
    reader.close();
  }
}

/** Handles `/explain`: what the last call of a model was sent, or call N, counted from the last. */
export async function explainCall(repl: ReplContext, argument: string): Promise<void> {
  if (!/^(?:|[1-9]\d{0,5})$/.test(argument))
    throw usageError("/explain takes the number of a call of a model; 1 is the last one.");
  if (repl.conversation.session === null) return repl.context.output.line("No model was called yet.");
  const nth = argument === "" ? 1 : Number(argument);
  const { run } = await import("../commands/explain.ts");
  await interruptible(repl, run, { arguments: [repl.conversation.ref.key], options: { nth } });
}

type Run = (context: ReplContext["context"], input: CommandInput) => Promise<number>;

function interruptible(repl: ReplContext, run: Run, input: CommandInput): Promise<void> {
  return repl.interruptible(async (signal) => {
    await run({ ...repl.context, signal }, input);
  });
}
