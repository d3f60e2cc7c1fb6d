import type { SessionEntry, SessionEvent, SessionState } from "@throughline/core";
import { nextUpdatedAtMs, patchEntry, refused } from "@throughline/core/internal";

/**
 * Holds a session without its entry and its records. The session is archived exactly when the ref has an `archiveId`.
 */
export type SessionFrame = Omit<SessionState, "entry" | "archived" | "messageCount">;

/** Returns the session in the form that callers get. Only the entry is shared with the stored data. */
export function sessionState(frame: SessionFrame, entry: SessionEntry, messageCount: number): SessionState {
  const { ref, sessionId, revision, head, createdAtMs, updatedAtMs } = structuredClone(frame);
  const archived = ref.archiveId !== undefined;
  return { ref, sessionId, archived, entry, revision, head, messageCount, createdAtMs, updatedAtMs };
}

/**
 * Plans the entry without the fields that a redaction removes. Returns null when the entry has none of the fields.
 * @throws {ThroughlineError} INPUT_INVALID as `planEntry`
 */
export function planFieldRemoval(
  frame: SessionFrame,
  entry: SessionEntry,
  fields: readonly string[],
  nowMs: number,
): EntryPlan | null {
  const present = fields.filter((field) => Object.hasOwn(entry, field));
  if (present.length === 0) return null;
  return planEntry(frame, patchEntry(entry, Object.fromEntries(present.map((field) => [field, undefined]))), nowMs);
}

/** Plans the write of an entry. */
export interface EntryPlan {
  /** Holds the session's row after the write. */
  readonly frame: SessionFrame;
  /** Holds the entry after the write. */
  readonly entry: SessionEntry;
  /** Lists the events to announce after the write. */
  readonly events: readonly SessionEvent[];
}

/**
 * Plans the write of an entry: the revision grows by one. The activity time neither goes back nor lies far ahead of the
 * store's clock.
 * @throws {ThroughlineError} INPUT_INVALID when the entry is another session's
 */
export function planEntry(frame: SessionFrame, entry: SessionEntry, nowMs: number): EntryPlan {
  const { ref, sessionId, revision } = frame;
  if (entry.sessionId !== sessionId)
    throw refused("INPUT_INVALID", "An append cannot change the sessionId of the entry.", { sessionId });
  const { updatedAtMs, wasClamped } = nextUpdatedAtMs(frame.updatedAtMs, entry.updatedAt, nowMs);
  const next = { ...frame, revision: revision + 1, updatedAtMs };
  if (!wasClamped) return { frame: next, entry, events: [] };
  const claimedMs = Number(entry.updatedAt);
  const clamped = { name: "updated-at-clamped", ref, claimedMs, storedMs: updatedAtMs } as const;
  return { frame: next, entry: patchEntry(entry, { updatedAt: updatedAtMs }), events: [clamped] };
}
