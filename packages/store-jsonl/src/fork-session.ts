import { hasErrorCode, type SessionRef } from "@throughline/core";
import { assertNoArchiveName } from "./recover-entries.ts";
import { assertSessionId, quote, refused } from "@throughline/core/internal";
import { transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { afterCommit, openIfThere, withFileErrors } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { copyForFork, headOfFork } from "./fork-transcript.ts";
import { ownHeaderLine } from "./own-header.ts";
import { assertCanBegin, openSettled } from "./session-changes.ts";
import { removeAbandoned, transcriptNameOf } from "./session-copies.ts";
import type { SessionRow } from "./session-row.ts";
import { locateSession, underLocks, type ChangeContext } from "./under-locks.ts";
import type { ForkSource } from "./store-envelope.ts";

export interface ForkTarget {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly atSeq: number;
}

/**
 * Creates a session that starts with the records of another. The records are copied without a lock. Under the locks the
 * finished file is renamed and the log gets its line. If the process dies in between, the next search adopts the file,
 * which states its session.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, INPUT_INVALID, STORE_CORRUPT and those of new ids
 */
export async function forkSession(scope: ChangeContext, ref: SessionRef, target: ForkTarget): Promise<SessionRow> {
  const { agent, context } = scope;
  const { files } = context;
  assertSessionId(target.sessionId);
  assertNoArchiveName(target.sessionId);
  let copy: FinishedCopy | null = null;
  const find = async (): Promise<SessionRow> => {
    for (;;) {
      const outdated = copy;
      // Cleared before the discard, so that a failed discard is not repeated in `finally`.
      copy = null;
      if (outdated !== null) discard(files, outdated);
      const origin = await locateSession(agent, ref, true);
      assertFree(scope, target);
      agent.prepareWriting();
      removeAbandoned(files, agent.folder.torn, context.clock.nowMs());
      copy = await copyOrigin(scope, origin, target).catch((error: unknown) => {
        // The origin was archived, reset, renamed or purged meanwhile, so its transcript is not lost; look it up again.
        if (!hasErrorCode(error, "STORE_CORRUPT") || isAsItWas(agent, origin)) throw error;
        return null;
      });
      if (copy !== null) return origin;
    }
  };
  const wants = { find, others: () => (copy === null ? [] : [copy.row]), needsEntries: () => true };
  try {
    return await underLocks(scope, ref, wants, (now) => {
      if (copy === null || factsOf(scope, now)?.identity !== copy.identity) return "changed";
      // A redaction replaces the file before it removes old copies, so it may have removed this new copy too.
      if (files.facts(copy.temporary) === null) return "changed";
      assertFree(scope, target);
      openSettled(agent, now);
      commit(scope, copy.temporary, copy.row);
      return copy.row;
    });
  } finally {
    if (copy !== null) discard(files, copy);
  }
}

function isAsItWas(agent: AgentSessionFiles, { sessionId, fileName, key, isArchived }: SessionRow): boolean {
  const now = agent.locateId(sessionId);
  return now?.fileName === fileName && now.key === key && now.isArchived === isArchived;
}

interface FinishedCopy {
  readonly row: SessionRow;
  readonly temporary: string;
  readonly identity: string | undefined;
  /** Keeps the origin's file open. Its inode cannot be reused meanwhile, so an equal identity means the same file. */
  readonly pin: number | null;
}

function discard(files: Files, { pin, temporary }: Pick<FinishedCopy, "pin" | "temporary">): void {
  if (pin !== null) files.close(pin);
  files.remove(temporary);
}

function factsOf({ agent, context }: ChangeContext, row: SessionRow): FileFacts | null {
  return context.files.facts(agent.folder.session(agent.fileNameOf(row)));
}

/** Returns null when the origin's file was replaced during the copy, because the copy must then start again. */
async function copyOrigin(scope: ChangeContext, origin: SessionRow, target: ForkTarget): Promise<FinishedCopy | null> {
  const { agent, context } = scope;
  const { files, clock, random } = context;
  await agent.prepare(origin, true);
  const held = agent.openExisting(origin, true);
  const { identity, modifiedNs } = held.file.facts ?? {};
  const { sessionId, ref: targetRef } = target;
  const nowMs = clock.nowMs();
  const atSeq = Math.min(target.atSeq, held.transcript.head.lastSeq);
  const row = rowOfFork(agent, held, { ...target, atSeq }, nowMs);
  const forkedFrom = forkSourceOf(agent, held.row, atSeq);
  const parentSession = agent.folder.session(agent.fileNameOf(held.row));
  const fork = { forkedFrom, origins: row.origins ?? [], parentSession };
  const header = ownHeaderLine(row, context.workingDirectoryOf(held.row), fork);
  // The name puts the copy among the saved parts of the origin, so that a redaction or purge of the origin removes it.
  const original = transcriptNameOf(origin.fileName);
  const temporary = `${agent.folder.torn}/${original}.fork-${nowMs}-${random.uint32().toString(36)}`;
  const copy = { row, temporary, identity, pin: openIfThere(files, held.path) };
  try {
    const owner = { ref: targetRef, sessionId };
    await copyForFork(context, { from: held, toSeq: atSeq, owner, header, temporary });
    return copy;
  } catch (error) {
    discard(files, copy);
    // A redaction may have replaced the file, so the line positions are outdated and the error proves nothing.
    const now = factsOf(scope, held.row);
    if (now?.identity === identity && now?.modifiedNs === modifiedNs) throw error;
    return null;
  }
}

function commit({ agent, context }: ChangeContext, temporary: string, row: SessionRow): void {
  const { files } = context;
  const { folder } = agent;
  const path = folder.session(row.fileName);
  withFileErrors(path, () => files.rename(temporary, path));
  try {
    withFileErrors(path, () => agent.names.flush(path, files.facts(path)?.identity ?? ""));
    agent.log.write({ op: "fork", rows: [row] });
  } catch (error) {
    // A file left here would be adopted as the session whose creation was refused.
    afterCommit(path, () => files.remove(path));
    throw error;
  }
  context.emit({ name: "session-created", ref: agent.refOf(row), sessionId: row.sessionId });
}

function rowOfFork(
  agent: AgentSessionFiles,
  { row: origin, transcript }: OpenTranscript,
  target: ForkTarget,
  nowMs: number,
): SessionRow {
  const { sessionId, atSeq, ref } = target;
  const earlier = (origin.origins ?? []).map(([id, seq]) => [id, Math.min(seq, atSeq)] as const);
  const savedHead = headOfFork(origin.savedHead, transcript.head, sessionId, atSeq);
  return {
    sessionId,
    key: ref.key,
    fileName: transcriptFileNameOf({ sessionId, key: ref.key }),
    entry: { sessionId, forkedFrom: forkSourceOf(agent, origin, atSeq) },
    revision: 1,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    isArchived: false,
    origins: [[origin.sessionId, atSeq], ...earlier],
    ...(savedHead === null ? {} : { savedHead }),
  };
}

function forkSourceOf(agent: AgentSessionFiles, { key, sessionId }: SessionRow, atSeq: number): ForkSource {
  return { agentId: agent.address.agentId, key, sessionId, atSeq };
}

function assertFree(scope: ChangeContext, { ref, sessionId }: ForkTarget): void {
  const { agent } = scope;
  if (agent.log.idOf(ref.key) !== null)
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(ref.key)}.`, { ...ref });
  assertCanBegin(scope, ref.key, sessionId);
}
