import type { AppendResult, SessionRef } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { sharersOf } from "./redact-session.ts";
import type { SessionRow } from "./session-row.ts";

/** A reset between the two looks gives the records to another session, which then gets the references. */
export async function appendReferring<Appended extends { readonly result: AppendResult }>(
  agent: AgentSessionFiles,
  ref: SessionRef,
  ids: readonly string[],
  append: () => Promise<Appended>,
): Promise<Appended> {
  const row = await agent.locate(ref);
  if (row === null) return append();
  const appended = await agent.stored.referring(row.sessionId, ids, append);
  const { sessionId } = appended.result.head;
  if (sessionId !== row.sessionId) await agent.stored.referring(sessionId, ids, async () => appended);
  return appended;
}

/** Deletes the files to which only redacted records referred. */
export async function recountFiles(agent: AgentSessionFiles, ref: SessionRef, seqs: readonly number[]): Promise<void> {
  const reached = [ref, ...(await sharersOf(agent, ref, seqs)).map((sharer) => sharer.ref)];
  for (const each of reached) {
    const row = await agent.locate(each);
    if (row !== null && agent.stored.refersToFiles(row.sessionId)) await agent.stored.recount(row);
  }
}

/** A fork refers to the files of the records that it has. */
export async function recountFork(agent: AgentSessionFiles, ref: SessionRef, fork: SessionRow): Promise<void> {
  const origin = await agent.locate(ref);
  if (origin !== null && agent.stored.refersToFiles(origin.sessionId)) await agent.stored.recount(fork);
}
