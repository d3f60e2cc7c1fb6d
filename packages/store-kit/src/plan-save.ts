import { givenEntry, refused, sessionNotFound } from "@throughline/core/internal";
import { assertNotArchived, planArchive } from "./plan-move.ts";
import { type SessionEntry } from "@throughline/core";
import { planEntry, type EntryPlan, type SessionFrame } from "./session-frame.ts";
import type { SaveOptions, SessionRef } from "@throughline/core";

/** What a save writes. */
interface SavePlan extends EntryPlan {
  /** A session that begins, empty. Its ids must be free: `assertIdsFree` or `IdClaims`. */
  readonly isNew: boolean;
  /** The session that had the key and is archived in the same commit. */
  readonly archived: SessionFrame | null;
}

/** On what terms an entry is saved; `nowMs` is the store's clock. */
interface SaveTerms extends Pick<SaveOptions, "ifRevision" | "createdAtMs"> {
  /** The store's clock, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** When a session begins that is made now. @throws {ThroughlineError} INPUT_INVALID for an invalid time */
export function beginningMs({ createdAtMs, nowMs }: Pick<SaveTerms, "createdAtMs" | "nowMs">): number {
  if (createdAtMs === undefined) return nowMs;
  if (!Number.isSafeInteger(createdAtMs) || createdAtMs < 0)
    throw refused("INPUT_INVALID", "createdAtMs is a whole number of milliseconds from 0 on.", { createdAtMs });
  return Math.min(createdAtMs, nowMs);
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

/** A reset goes on counting revisions, so that a writer who still holds the old entry is refused. */
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
