import { IdClaims, RememberedAppends, type SessionFrame, sessionRefText } from "@throughline/core/store";
import type { KeptPayload, RecordRow } from "@throughline/core/store";

/** Changed only in synchronous sections: that is the store's whole exclusion. */
export interface MemorySession {
  frame: SessionFrame;
  entry: KeptPayload;
  /** The record with seq n at n - 1. */
  readonly rows: RecordRow[];
  readonly seqById: Map<string, number>;
  readonly remembered: RememberedAppends;
  /** The open reply. */
  partial: { readonly fence: number; readonly turnId: string; readonly kept: KeptPayload } | null;
}

/** What memory stores keep their sessions in. Stores over the same data hold the same sessions. */
export interface MemoryData {
  /** By `sessionRefText` of the session's ref; an archived one has its session id as `archiveId`. */
  readonly sessions: Map<string, MemorySession>;
  readonly ids: IdClaims;
  /** Agents whose lock is held, by namespace and id. */
  readonly locked: Set<string>;
}

/** Data that outlives the handles over it. */
export function createMemoryData(): MemoryData {
  return { sessions: new Map(), ids: new IdClaims(), locked: new Set() };
}

export function emptySession(frame: SessionFrame, entry: KeptPayload): MemorySession {
  return { frame, entry, rows: [], seqById: new Map(), remembered: new RememberedAppends(), partial: null };
}

/** Puts a session under the address of its frame; null takes it out and frees its id. An archived one has no open reply. */
export function placeSession(data: MemoryData, session: MemorySession, frame: SessionFrame | null): void {
  data.sessions.delete(sessionRefText(session.frame.ref));
  if (frame?.ref.archiveId !== undefined) session.partial = null;
  if (frame === null) data.ids.release(session.frame);
  else data.sessions.set(sessionRefText(frame.ref), Object.assign(session, { frame }));
}
