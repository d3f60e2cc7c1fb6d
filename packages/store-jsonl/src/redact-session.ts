import type { RedactOptions, RedactResult, SessionRef } from "@throughline/core";
import type { SharedRecords } from "@throughline/core/internal";
import { quote, refused } from "@throughline/core/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import { replaceLost } from "./lost-records.ts";
import { afterCommit } from "./file-work.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { removeFields } from "./remove-fields.ts";
import { redactTranscript } from "./redact-transcript.ts";
import type { SessionRow } from "./session-row.ts";
import { isNotReady, locateSession, openToWrite, underLocks, type ChangeContext } from "./under-locks.ts";

interface Relative {
  readonly row: SessionRow;
  readonly sharedSeq: number;
}

export async function sharersOf(
  agent: AgentSessionFiles,
  ref: SessionRef,
  seqs: readonly number[],
): Promise<readonly SharedRecords[]> {
  const row = await locateSession(agent, ref, true);
  return relativesOf(agent, row).flatMap(({ row: other, sharedSeq }) => {
    const shared = seqs.filter((seq) => seq <= sharedSeq);
    return shared.length === 0 ? [] : [{ ref: agent.refOf(other), sessionId: other.sessionId, seqs: shared }];
  });
}

/** Redacts records in a session and in every session that shares them, because a fork has its own copies. */
export async function redactSession(
  scope: ChangeContext,
  ref: SessionRef,
  ids: readonly string[],
  options: RedactOptions,
): Promise<RedactResult> {
  const { agent, context } = scope;
  const { entryFields = [] } = options;
  let rows: readonly SessionRow[] = [];
  const find = async (): Promise<SessionRow> => {
    const row = await locateSession(agent, ref, true);
    rows = [row, ...relativesOf(agent, row).map((relative) => relative.row)];
    // The files are read before the locks are taken, so that no process waits for a long read.
    for (const each of rows) {
      await agent.prepare(each, true);
      agent.open(each, true);
    }
    return row;
  };
  const wants = {
    find,
    others: () => rows.slice(1),
    needsEntries: () => entryFields.length > 0,
    isWhole: true,
    pauses: { halfBytes: null, count: 0 },
  };
  return underLocks(scope, ref, wants, (now) => {
    const present = relativesOf(agent, now);
    // A fork that was created meanwhile is not locked, so the locks must be taken again.
    if (present.some((one) => !rows.some(({ sessionId }) => sessionId === one.row.sessionId))) return "changed";
    const reached = [now, ...present.map((one) => one.row)];
    // Rows are read before the rewrite, because a field may be set only in a transcript. They are also read before the
    // session is opened: with many sessions the first transcripts may be closed again.
    const before = entryFields.length === 0 ? [] : reached.flatMap((each) => agent.open(each, true)?.row ?? []);
    const held = openToWrite(scope, now, wants);
    if (isNotReady(held)) return held;
    assertRecords(held, ids);
    for (const each of reached) agent.partials.remove(each.sessionId, { isFlushed: true });
    const result = redactTranscript(context, agent, held, ids, options);
    afterCommit(held.path, () =>
      redactIn(present, result.seqs, (relative, seqs) => {
        const found = agent.open(relative, true);
        if (found === null) return;
        const theirs = replaceLost(context, agent, found);
        const shared = ids.filter((id) => seqs.includes(theirs.transcript.seqById.get(id) ?? 0));
        redactTranscript(context, agent, theirs, shared, options);
      }),
    );
    if (entryFields.length > 0) afterCommit(held.path, () => removeFields(agent, context, before, entryFields));
    return result;
  });
}

/** @throws {ThroughlineError} RECORD_NOT_FOUND; nothing is redacted or removed then */
function assertRecords({ transcript }: OpenTranscript, ids: readonly string[]): void {
  const unknown = ids.find((id) => !transcript.seqById.has(id));
  if (unknown !== undefined)
    throw refused("RECORD_NOT_FOUND", `The session holds no record ${quote(unknown)}.`, { id: unknown });
}

function redactIn(
  relatives: readonly Relative[],
  seqs: readonly number[],
  redact: (row: SessionRow, seqs: readonly number[]) => void,
): void {
  for (const { row, sharedSeq } of relatives) {
    const shared = seqs.filter((seq) => seq <= sharedSeq);
    if (shared.length > 0) redact(row, shared);
  }
}

/** Returns the sessions that share an origin. The origin may be one of the two, and may have been purged. */
function relativesOf(agent: AgentSessionFiles, row: SessionRow): readonly Relative[] {
  const own = lineOf(row);
  const candidates = new Map(agent.log.image.forks().map((fork) => [fork.sessionId, fork]));
  for (const [sessionId] of row.origins ?? []) {
    const origin = agent.log.row(sessionId);
    if (origin !== null) candidates.set(sessionId, origin);
  }
  candidates.delete(row.sessionId);
  return [...candidates.values()].flatMap((other) => {
    const shared = lineOf(other).map(([id, seq]) => Math.min(seq, own.find(([one]) => one === id)?.[1] ?? 0));
    const sharedSeq = Math.max(...shared);
    return sharedSeq > 0 ? [{ row: other, sharedSeq }] : [];
  });
}

function lineOf({ sessionId, origins = [] }: SessionRow): readonly (readonly [sessionId: string, seq: number])[] {
  return [[sessionId, Infinity], ...origins];
}
