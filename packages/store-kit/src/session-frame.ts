import type { SessionEntry, SessionEvent, SessionState } from "@throughline/core";
import { nextUpdatedAtMs, patchEntry, refused } from "@throughline/core/internal";

/** What a store keeps of a session beside its entry and its records. Archived exactly when the ref has an `archiveId`. */
export type SessionFrame = Omit<SessionState, "entry" | "archived" | "messageCount">;

/** The session as it is handed out, sharing nothing with what is kept but the entry. */
export function sessionState(frame: SessionFrame, entry: SessionEntry, messageCount: number): SessionState {
  const { ref, sessionId, revision, head, createdAtMs, updatedAtMs } = structuredClone(frame);
  const archived = ref.archiveId !== undefined;
  return { ref, sessionId, archived, entry, revision, head, messageCount, createdAtMs, updatedAtMs };
}

/**
 * The entry without the fields that a redaction removes; null if it has none of them.
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

/** An entry to be written, and the session with it. */
export interface EntryPlan {
  /** The session after the write. */
  readonly frame: SessionFrame;
  /** The entry that is written. */
  readonly entry: SessionEntry;
  /** To be announced once it is written. */
  readonly events: readonly SessionEvent[];
}

/**
 * What writing an entry does to its session: one revision more, and an activity time that neither goes back nor lies
 * far ahead of the store's clock.
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
