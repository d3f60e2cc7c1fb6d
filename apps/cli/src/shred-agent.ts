import { hasErrorCode, type SessionRef, type SessionStore } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { forgetTypedLines } from "./chat/typed-lines.ts";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { usageError } from "./error-report.ts";
import { noteSpooledCalls } from "./server/spooled-calls.ts";
import { type ShredOptions, shreddingOf, tellProof } from "./shred.ts";
import { waitForTurn } from "./wait-for-turn.ts";

interface Agent {
  readonly namespace: string;
  readonly agentId: string;
}

/**
 * Purges the sessions and files of an agent, then destroys all of its keys, also those of its files. After an interruption
 * the same command does the rest.
 */
export async function shredAgent(context: CommandContext, options: ShredOptions): Promise<number> {
  const { output, settings } = context;
  const { namespace, agentId } = context.scope;
  const agent = { namespace, agentId };
  // The default agent must not be erased by a command that names none.
  if (!settings.some(({ key, source }) => key === "agent" && source === "flag"))
    throw usageError("State the agent that is erased: --agent ID.");
  const shredding = await shreddingOf(context, { ...options, shred: true });
  if (shredding === null) return 0;
  const { encryption, reason } = shredding;
  if (encryption.status().scope === "namespace")
    throw usageError("The keyring has one key for each namespace, so no agent of it is erased alone.");
  const store = await context.openStore("write");
  const planned = (await sessionsOf(store, agent)).length;
  await context.confirm(
    `Delete ${counted(planned, "session")} of the agent ${JSON.stringify(agentId)} for good, with its files, and destroy its keys?`,
  );
  const sessions = await purgeSessions(context, store, agent);
  // Their keys would be destroyed under a program that goes on writing.
  if ((await sessionsOf(store, agent)).length > 0)
    throw refused("SESSION_BUSY", "A program keeps creating sessions of the agent. End it, and repeat the command.", {
      agentId,
    });
  const files = await deleteFiles(store, agent);
  const proof = await encryption.destroyKeys(agent, reason);
  if (output.isJson) await output.object({ kind: "agentErasure", agentId, sessions, files, proof });
  else await output.line(`${agentId}\t${counted(sessions, "session")}, ${counted(files, "file")}\tdeleted`);
  await tellProof(context, shredding, proof);
  forgetTypedLines(context, agentId);
  await noteSpooledCalls(context);
  return 0;
}

async function sessionsOf(store: SessionStore, agent: Agent): Promise<readonly SessionRef[]> {
  const refs: SessionRef[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ ...agent, state: "any", cursor });
    refs.push(...page.sessions.map(({ ref }) => ref));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return refs;
}

/** Sessions that are created meanwhile are found by the next round. */
const mostRounds = 8;

async function purgeSessions(context: CommandContext, store: SessionStore, agent: Agent): Promise<number> {
  let purged = 0;
  for (let round = 0; round < mostRounds; round++) {
    const refs = await sessionsOf(store, agent);
    if (refs.length === 0) break;
    for (const ref of refs) {
      await waitForTurn(store, ref, context);
      if (await isPurged(store, ref)) purged += 1;
    }
  }
  return purged;
}

/** Returns false when another process was first. */
async function isPurged(store: SessionStore, ref: SessionRef): Promise<boolean> {
  try {
    await store.remove(ref, { purge: true });
    return true;
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return false;
    throw error;
  }
}

async function deleteFiles(store: SessionStore, agent: Agent): Promise<number> {
  let deleted = 0;
  for await (const page of store.files?.list(agent) ?? [])
    for (const { id } of page) if (await store.files?.delete(agent, id)) deleted += 1;
  return deleted;
}
