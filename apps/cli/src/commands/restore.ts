import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { restoreSession } from "@throughline/core/internal";
import { showSession } from "../show-session.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const archiveId = input.options["archive"] as string | undefined;
  if (archiveId === undefined) throw usageError("restore needs --archive ID; `sessions --archived` lists them.");
  const store = await context.openStore("write");
  const { namespace, agentId, isAgentGiven } = context.scope;
  const query = { namespace, ...(isAgentGiven ? { agentId } : {}), signal: context.signal };
  await showSession(context, await restoreSession(store, archiveId, query), "restored");
  return 0;
}
