import { endSession } from "@throughline/core";
import { assertMayEnd, loadExisting, resolveSession } from "@throughline/core/internal";
import { forgetTypedLines } from "../chat/typed-lines.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import { type DeleteUserOptions, deleteUserSessions } from "../delete-user.ts";
import { usageError } from "../error-report.ts";
import { noteSpooledCalls } from "../server/spooled-calls.ts";
import { showSession } from "../show-session.ts";
import { type ShredOptions, shreddingOf, shredSessions, tellProof } from "../shred.ts";
import { waitOptions } from "../wait-for-turn.ts";

/** An agent's main session can be reset but not deleted, so it is refused here. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as DeleteUserOptions & ShredOptions;
  const [key] = input.arguments;
  const isUser = options.user !== undefined || options.wholeNamespace === true;
  if (isUser === (key !== undefined)) throw usageError("Give a key, --user PREFIX, or --whole-namespace.");
  if (options.dryRun === true && !isUser) throw usageError("--dry-run needs --user or --whole-namespace.");
  if (options.keepForks === true && isUser)
    throw usageError("--keep-forks needs a key: a user's forks are deleted too.");
  return isUser ? deleteUserSessions(context, options) : deleteSession(context, key ?? "", options);
}

async function deleteSession(
  context: CommandContext,
  key: string,
  options: DeleteUserOptions & ShredOptions,
): Promise<number> {
  const { output, scope, signal } = context;
  const shredding = await shreddingOf(context, options);
  const isPurge = options.purge === true || shredding !== null;
  const store = await context.openStore("write");
  const { ref, sessionId, head } = await resolveSession(store, key, scope, {
    isExact: true,
    signal,
  });
  assertMayEnd(ref);
  const what = `the ${head.lastSeq} records of ${ref.key} (${sessionId})`;
  if (isPurge) await context.confirm(`Delete ${what} for good${shredding === null ? "" : ", and destroy its key"}?`);
  const end = (): Promise<unknown> => endSession(store, ref, { ...waitOptions(context), purge: isPurge });
  const proof =
    shredding === null
      ? await end().then(() => null)
      : await shredSessions(context, store, shredding, [ref], (onPurged) =>
          end().then(() => onPurged({ ref, sessionId })),
        );
  if (!isPurge) {
    await showSession(context, await loadExisting(store, { ...ref, archiveId: sessionId }), "archived");
    output.note(`To restore it: \`throughline restore --archive ${sessionId}\``);
  } else if (output.isJson) {
    await output.object({ kind: "removed", agentId: ref.agentId, key: ref.key, sessionId, proof });
  } else await output.line(`${ref.key}\t${sessionId}\tdeleted`);
  if (shredding !== null && proof !== null) await tellProof(context, shredding, proof);
  if (isPurge) {
    forgetTypedLines(context, ref.agentId);
    await noteSpooledCalls(context);
  }
  return 0;
}
