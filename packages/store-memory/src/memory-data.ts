import { IdClaims, type SessionFrame } from "@throughline/store-kit/internal";
import { RememberedAppends, sessionRefText } from "@throughline/core/internal";
import type { KeptPayload, RecordRow } from "@throughline/store-kit/internal";

/** Changed only in synchronous sections: that is the store's whole exclusion. */
export interface MemorySession {
  /** The session's address, head and revision. */
  frame: SessionFrame;
  /** The entry as it is kept, coded under a codec. */
  entry: KeptPayload;
  /** The record with seq n at n - 1. */
  readonly rows: RecordRow[];
  /** The seq of each record, by its id. */
  readonly seqById: Map<string, number>;
  /** The keyed appends that are remembered. */
  readonly remembered: RememberedAppends;
  /** The open reply. */
  partial: {
    /** The number of the turn's lease. */
    readonly fence: number;
    /** The turn that the reply belongs to. */
    readonly turnId: string;
    /** The reply as it is kept, coded under a codec. */
    readonly kept: KeptPayload;
  } | null;
}

/** What memory stores keep their sessions in. Stores over the same data hold the same sessions. */
export interface MemoryData {
  /** By `sessionRefText` of the session's ref; an archived one has its session id as `archiveId`. */
  readonly sessions: Map<string, MemorySession>;
  /** The session ids that are in use. */
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
