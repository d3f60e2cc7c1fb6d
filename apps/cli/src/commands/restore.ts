import { ThroughlineError } from "@throughline/core";
import type { SessionState, SessionStore } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { listSessions } from "@throughline/queries";
import { showSession } from "../show-session.ts";

/** Makes an archived session the current one of its key again. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const archiveId = input.options["archive"] as string | undefined;
  if (archiveId === undefined) throw usageError("restore needs --archive ID; `sessions --archived` lists them.");
  const store = await context.openStore("write");
  const found = await findArchived(context, store, archiveId);
  await showSession(context, await store.move(found.ref, { kind: "restore" }), "restored");
  return 0;
}

async function findArchived(
  { scope, signal }: CommandContext,
  store: SessionStore,
  archiveId: string,
): Promise<SessionState> {
  const query = {
    namespace: scope.namespace,
    ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}),
    state: "archived" as const,
    sort: "key" as const,
    limit: 1000,
    signal,
  };
  for await (const state of listSessions(store, query)) {
    if (state.ref.archiveId === archiveId || state.sessionId === archiveId) return state;
  }
  throw new ThroughlineError("SESSION_NOT_FOUND", `No archived session has the id ${JSON.stringify(archiveId)}.`, {
    outcome: "not-applied",
    details: { archiveId },
  });
}
