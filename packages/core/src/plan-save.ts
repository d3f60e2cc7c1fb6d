import { sessionNotFound } from "./open-session.ts";
import { assertNotArchived, planArchive } from "./plan-move.ts";
import { refused } from "./refused.ts";
import { givenEntry, type SessionEntry } from "./session-entry.ts";
import { planEntry, type EntryPlan, type SessionFrame } from "./session-frame.ts";
import type { SessionRef } from "./session-ref.ts";

export interface SavePlan extends EntryPlan {
  /** A session that begins, empty. Its ids must be free: `assertIdsFree` or `IdClaims`. */
  readonly isNew: boolean;
  /** The session that had the key and is archived in the same commit. */
  readonly archived: SessionFrame | null;
}

/**
 * What saving an entry does: the same session's next revision, a session's beginning, or a reset. `current` is the
 * session at the ref. To be asked under the same exclusion as the write.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_ARCHIVED, REVISION_CONFLICT
 */
export function planSave(
  current: SessionFrame | null,
  ref: SessionRef,
  given: SessionEntry,
  { ifRevision, nowMs }: { readonly ifRevision: number | null; readonly nowMs: number },
): SavePlan {
  const entry = givenEntry(given);
  if (current === null && ref.archiveId !== undefined) throw sessionNotFound(ref);
  assertNotArchived(ref);
  const revision = current?.revision ?? null;
  if (revision !== ifRevision)
    throw refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
  if (current?.sessionId === entry.sessionId)
    return { ...planEntry(current, entry, nowMs), isNew: false, archived: null };
  const begun = planEntry(emptyFrame(ref, entry, revision ?? 0, nowMs), entry, nowMs);
  const archive = current === null ? null : planArchive(current);
  const { ref: address, sessionId } = begun.frame;
  const created = { name: "session-created", ref: address, sessionId } as const;
  return {
    ...begun,
    isNew: true,
    archived: archive?.frame ?? null,
    events: [...(archive?.events ?? []), created, ...begun.events],
  };
}

/** A reset goes on counting revisions, so that a writer who still holds the old entry is refused. */
function emptyFrame(
  { namespace, agentId, key }: SessionRef,
  entry: SessionEntry,
  revision: number,
  nowMs: number,
): SessionFrame {
  const { sessionId } = entry;
  return {
    ref: { namespace, agentId, key },
    sessionId,
    revision,
    head: { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null },
    createdAtMs: nowMs,
    updatedAtMs: typeof entry.updatedAt === "number" ? 0 : nowMs,
  };
}
