import type { SessionRef } from "@throughline/core";
import { fileNotFound } from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { LostReferences } from "./file-references.ts";
import { sharersOf } from "./redact-session.ts";
import type { SessionRow } from "./session-row.ts";

/**
 * Notes the files of an append, and runs it. The append finds under the lock of its session that a redaction of another
 * process took the note back, or that a reset gave the records to another session. Then both are repeated, unless the
 * redaction also deleted a file.
 * @throws {ThroughlineError} FILE_NOT_FOUND for a file that was there before
 */
export async function appendReferring<Appended>(
  agent: AgentSessionFiles,
  ref: SessionRef,
  ids: readonly string[],
  append: () => Promise<Appended>,
): Promise<Appended> {
  const there = ids.filter((id) => agent.stored.has(id));
  for (;;) {
    const row = await agent.locate(ref);
    if (row === null) return append();
    try {
      return await agent.stored.referring(row.sessionId, ids, append);
    } catch (error) {
      if (!(error instanceof LostReferences)) throw error;
      const deleted = there.find((id) => !agent.stored.has(id));
      if (deleted !== undefined) throw fileNotFound(deleted);
    }
  }
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
