import { hasErrorCode, type SessionRef } from "@throughline/core";
import { assertNoArchiveName } from "./recover-entries.ts";
import { assertSessionId, quote, refused } from "@throughline/core/internal";
import { transcriptFileNameOf } from "@throughline/openclaw-format/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { HeldSession } from "./held-session.ts";
import { afterCommit, openIfThere, withFileErrors } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { copyForFork, headOfFork } from "./fork-transcript.ts";
import { ownHeaderLine } from "./own-header.ts";
import { assertCanBegin, heldSettled } from "./session-changes.ts";
import { removeAbandoned, transcriptNameOf } from "./session-copies.ts";
import type { SessionRow } from "./session-row.ts";
import { locateSession, underLocks, type ChangeContext } from "./under-locks.ts";
import type { ForkSource } from "./store-envelope.ts";

export interface ForkTarget {
  readonly ref: SessionRef;
  readonly sessionId: string;
  /** Infinity for everything. */
  readonly atSeq: number;
}

/**
 * A session that begins with the records of another. They are copied beforehand, with nothing locked; under the locks the
 * finished file takes its name and the entries log its line. Should the process die in between, the file itself says what
 * session it is, and the next look takes it in.
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
      // Before it is discarded: should that fail, it is not discarded once more.
      copy = null;
      if (outdated !== null) discard(files, outdated);
      const origin = await locateSession(agent, ref, true);
      assertFree(scope, target);
      agent.prepareWriting();
      removeAbandoned(files, agent.folder.torn, context.clock.nowMs());
      copy = await copyOrigin(scope, origin, target).catch((error: unknown) => {
        // Archived, reset, renamed or purged meanwhile its transcript is not gone: it is to be looked up again.
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
      // A redaction puts the new file in place before it removes the copies: one of the new file may be among them.
      if (files.facts(copy.temporary) === null) return "changed";
      assertFree(scope, target);
      heldSettled(agent, now);
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

/** The transcript of a fork under a name of its own, and what it is a copy of. */
interface FinishedCopy {
  readonly row: SessionRow;
  readonly temporary: string;
  /** Of the origin's transcript. */
  readonly identity: string | undefined;
  /** The same file, open: meanwhile no other gets its number, so that the same number means the same file. */
  readonly pin: number | null;
}

function discard(files: Files, { pin, temporary }: Pick<FinishedCopy, "pin" | "temporary">): void {
  if (pin !== null) files.close(pin);
  files.remove(temporary);
}

function factsOf({ agent, context }: ChangeContext, row: SessionRow): FileFacts | null {
  return context.files.facts(agent.folder.session(agent.fileNameOf(row)));
}

/** Null when the origin became another file meanwhile. */
async function copyOrigin(scope: ChangeContext, origin: SessionRow, target: ForkTarget): Promise<FinishedCopy | null> {
  const { agent, context } = scope;
  const { files, clock, random } = context;
  await agent.prepare(origin, true);
  const held = agent.holdExisting(origin, true);
  const { identity, modifiedNs } = held.file.facts ?? {};
  const { sessionId, ref: targetRef } = target;
  const nowMs = clock.nowMs();
  const atSeq = Math.min(target.atSeq, held.transcript.head.lastSeq);
  const row = rowOfFork(agent, held, { ...target, atSeq }, nowMs);
  const forkedFrom = forkSourceOf(agent, held.row, atSeq);
  const parentSession = agent.folder.session(agent.fileNameOf(held.row));
  const fork = { forkedFrom, origins: row.origins ?? [], parentSession };
  const header = ownHeaderLine(row, context.workingDirectoryOf(held.row), fork);
  // Beside what was set aside of the origin: it goes when that is redacted or purged.
  const original = transcriptNameOf(origin.fileName);
  const temporary = `${agent.folder.torn}/${original}.fork-${nowMs}-${random.uint32().toString(36)}`;
  const copy = { row, temporary, identity, pin: openIfThere(files, held.path) };
  try {
    const owner = { ref: targetRef, sessionId };
    await copyForFork(context, { from: held, toSeq: atSeq, owner, header, temporary });
    return copy;
  } catch (error) {
    discard(files, copy);
    // Redacted meanwhile: the lines were looked for where they stood in the file before it.
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
    // Left there it would be taken in as the session that was refused.
    afterCommit(path, () => files.remove(path));
    throw error;
  }
  context.emit({ name: "session-created", ref: agent.refOf(row), sessionId: row.sessionId });
}

function rowOfFork(
  agent: AgentSessionFiles,
  { row: origin, transcript }: HeldSession,
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
