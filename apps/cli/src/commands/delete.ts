import { endSession } from "@throughline/core";
import { assertMayEnd, loadExisting, resolveSession } from "@throughline/core/internal";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { type DeleteUserOptions, deleteUserSessions } from "../delete-user.ts";
import { usageError } from "../error-report.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";
import { showSession } from "../show-session.ts";
import { waitOptions } from "../wait-for-turn.ts";

/** An agent's main session can be reset but not deleted, so it is refused here. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as DeleteUserOptions;
  const [key] = input.arguments;
  const isUser = options.user !== undefined || options.wholeNamespace === true;
  if (isUser === (key !== undefined)) throw usageError("Give a key, --user PREFIX, or --whole-namespace.");
  if (options.dryRun === true && !isUser) throw usageError("--dry-run needs --user or --whole-namespace.");
  return isUser ? deleteUserSessions(context, options) : deleteSession(context, key ?? "", options.purge === true);
}

async function deleteSession(context: CommandContext, key: string, isPurge: boolean): Promise<number> {
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const { ref, sessionId, head } = await resolveSession(store, key, scope, {
    isExact: true,
    signal,
  });
  assertMayEnd(ref);
  if (isPurge) await context.confirm(`Delete the ${head.lastSeq} records of ${ref.key} (${sessionId}) for good?`);
  await endSession(store, ref, { ...waitOptions(context), purge: isPurge });
  if (!isPurge) {
    await showSession(context, await loadExisting(store, { ...ref, archiveId: sessionId }), "archived");
    output.note(`To restore it: \`throughline restore --archive ${sessionId}\``);
  } else if (output.isJson) {
    await output.object({ kind: "removed", agentId: ref.agentId, key: ref.key, sessionId });
  } else await output.line(`${ref.key}\t${sessionId}\tdeleted`);
  if (isPurge) {
    forgetTypedLines(context, ref.agentId);
    await noteSpooledCalls(context);
  }
  return 0;
}
