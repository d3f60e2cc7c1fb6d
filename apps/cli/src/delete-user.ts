import { deleteUser, type UserDeletion } from "@throughline/core/internal";
import { forgetTypedLines } from "./chat/typed-lines.ts";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { usageError } from "./error-report.ts";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { ErasureProof } from "@throughline/encryption";
import { type Shredding, type ShredOptions, shreddingOf, shredSessions, tellProof } from "./shred.ts";
import { noteSpooledCalls } from "./server/spooled-calls.ts";
import { terminalSafeLine } from "./terminal-safe.ts";
import { waitOptions } from "./wait-for-turn.ts";

export interface DeleteUserOptions extends ShredOptions {
  readonly user?: string;
  readonly wholeNamespace?: boolean;
  readonly dryRun?: boolean;
  readonly purge?: boolean;
}

/** Prints the plan, asks with its counts, and deletes. Without `--yes` in a script, only the plan is printed. */
export async function deleteUserSessions(context: CommandContext, options: DeleteUserOptions): Promise<number> {
  const { output, scope, signal } = context;
  const { user: keyPrefix = null, wholeNamespace, dryRun = false } = options;
  if (keyPrefix !== null && wholeNamespace === true)
    throw usageError("--user and --whole-namespace exclude each other.");
  const user = { namespace: scope.namespace, keyPrefix };
  const shredding = await shreddingOf(context, options);
  const store = await context.openStore(dryRun ? "read" : "write");
  const agentIds = [scope.agentId];
  const plan = await deleteUser(store, user, { dryRun: true, agentIds, signal });
  if (dryRun) return print(context, plan, null);
  await context.confirm(
    `Delete ${countsText(plan)} of ${userText(context, options)} for good${shredding === null ? "" : ", and destroy the keys"}?`,
  );
  let deleted = plan;
  const remove = async (onDeleted: (session: UserDeletion["sessions"][number]) => void): Promise<void> => {
    deleted = await deleteUser(store, user, {
      ...waitOptions(context),
      agentIds,
      onDeleted: (session) => {
        onDeleted(session);
        output.progress(`deleted ${terminalSafeLine(session.ref.key)}`);
      },
    });
  };
  const refs = keyPrefix === null ? null : plan.sessions.map(({ ref }) => ref);
  const proof = shredding === null ? await remove(() => {}) : await shredUser(context, store, shredding, refs, remove);
  output.clearProgress();
  for (const agentId of new Set(deleted.sessions.map(({ ref }) => ref.agentId))) forgetTypedLines(context, agentId);
  const code = await print(context, deleted, proof ?? null);
  if (shredding !== null && proof !== undefined) await tellProof(context, shredding, proof);
  if (deleted.sessions.length > 0) await noteSpooledCalls(context);
  return code;
}

/** A whole namespace needs no list of sessions: the same command does what an interruption left. */
async function shredUser(
  context: CommandContext,
  store: SessionStore,
  shredding: Shredding,
  refs: readonly SessionRef[] | null,
  remove: Parameters<typeof shredSessions>[4],
): Promise<ErasureProof> {
  if (refs !== null) return shredSessions(context, store, shredding, refs, remove);
  await remove(() => {});
  return shredding.encryption.destroyKeys({ namespace: context.scope.namespace }, shredding.reason);
}

function userText({ scope }: CommandContext, { user }: DeleteUserOptions): string {
  return user === undefined ? `the namespace ${JSON.stringify(scope.namespace)}` : JSON.stringify(user);
}

function countsText({ counts, sessions }: UserDeletion): string {
  const made = sessions.filter(({ because }) => because !== "key").length;
  const parts = [
    counted(counts.sessions, "session"),
    `${counts.archived} of them archived, ${made} forked or spawned`,
    counted(counts.records, "record"),
    counted(counts.messages, "message"),
  ];
  const unused = counts.unusedFiles ?? 0;
  const files = unused === 0 ? "" : `, and ${counted(unused, "file")} that no message refers to`;
  return `${parts[0]} (${parts[1]}) with ${parts[2]} (${parts[3]})${files}`;
}

async function print({ output }: CommandContext, deletion: UserDeletion, proof: ErasureProof | null): Promise<number> {
  const { state, counts, sessions, notReached } = deletion;
  if (output.isJson) {
    const listed = sessions.map(({ ref, sessionId, because }) => {
      const { agentId, key, archiveId = null } = ref;
      return { agentId, key, sessionId, archiveId, because };
    });
    await output.object({ kind: "userDeletion", state, counts, sessions: listed, notReached, proof });
    return 0;
  }
  const columns = [{ title: "KEY" }, { title: "ID", rank: 2 }, { title: "BECAUSE" }, { title: "STATE", rank: 1 }];
  await output.table(
    columns,
    sessions.map(({ ref, sessionId, because }) => [ref.key, sessionId, because, state]),
  );
  await output.flush();
  output.note(`${state === "planned" ? "Would delete" : "Deleted"} ${countsText(deletion)}.`);
  for (const sentence of notReached) output.note(sentence);
  return 0;
}
