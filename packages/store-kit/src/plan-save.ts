import { givenEntry, refused, sessionNotFound } from "@throughline/core/internal";
import { assertNotArchived, planArchive } from "./plan-move.ts";
import type { SessionEntry, SaveOptions, SessionRef } from "@throughline/core";
import { planEntry, type EntryPlan, type SessionFrame } from "./session-frame.ts";

/** Plans a save: an entry, and the session that it archives. */
interface SavePlan extends EntryPlan {
  /** The ids of a new session must be free, which `assertIdsFree` checks. The new session is empty. */
  readonly isNew: boolean;
  /** This session had the key and is archived in the same commit. */
  readonly archived: SessionFrame | null;
}

/** States the conditions of a save. */
interface SaveTerms extends Pick<SaveOptions, "ifRevision" | "createdAtMs"> {
  /** States the time of the store's clock, in milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Returns the start of a new session. A time in the future becomes the present.
 * @throws {ThroughlineError} INPUT_INVALID for an invalid time
 */
export function beginningMs({ createdAtMs, nowMs }: Pick<SaveTerms, "createdAtMs" | "nowMs">): number {
  if (createdAtMs === undefined) return nowMs;
  if (!Number.isSafeInteger(createdAtMs) || createdAtMs < 0)
    throw refused("INPUT_INVALID", "createdAtMs is a whole number of milliseconds from 0 on.", { createdAtMs });
  return Math.min(createdAtMs, nowMs);
}

/**
 * Decides what saving an entry does: it writes the session's next revision, starts a session, or resets it. `current`
 * is the session at the ref. The caller must hold the same exclusion as the write.
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_ARCHIVED, REVISION_CONFLICT
 */
export function planSave(
  current: SessionFrame | null,
  ref: SessionRef,
  given: SessionEntry,
  terms: SaveTerms,
): SavePlan {
  const { ifRevision, nowMs } = terms;
  const entry = givenEntry(given);
  const beginsAtMs = beginningMs(terms);
  if (current === null && ref.archiveId !== undefined) throw sessionNotFound(ref);
  assertNotArchived(ref);
  const revision = current?.revision ?? null;
  if (revision !== ifRevision)
    throw refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
  if (current?.sessionId === entry.sessionId)
    return { ...planEntry(current, entry, nowMs), isNew: false, archived: null };
  const begun = planEntry(emptyFrame(ref, entry, revision ?? 0, { beginsAtMs, nowMs }), entry, nowMs);
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

/** A reset continues to count revisions, so that a writer with the old entry is refused. */
function emptyFrame(
  { namespace, agentId, key }: SessionRef,
  entry: SessionEntry,
  revision: number,
  { beginsAtMs, nowMs }: { readonly beginsAtMs: number; readonly nowMs: number },
): SessionFrame {
  const { sessionId } = entry;
  return {
    ref: { namespace, agentId, key },
    sessionId,
    revision,
    head: { sessionId, lastSeq: 0, headId: null, windowSeq: null, fence: 0, turn: null },
    createdAtMs: beginsAtMs,
    updatedAtMs: typeof entry.updatedAt === "number" ? 0 : nowMs,
  };
}
