import { IdClaims, type SessionFrame } from "@throughline/store-kit/internal";
import { RememberedAppends, sessionRefText } from "@throughline/core/internal";
import type { KeptPayload, RecordRow } from "@throughline/store-kit/internal";

/** Holds one session. The store changes it only in synchronous sections, which exclude every other operation. */
export interface MemorySession {
  /** Holds the address, head and revision of the session. */
  frame: SessionFrame;
  /** Holds the entry in its stored form: encoded when the store has a codec. */
  entry: KeptPayload;
  /** Holds the records; the record with seq n is at index n - 1. */
  readonly rows: RecordRow[];
  /** Maps each record id to its seq. */
  readonly seqById: Map<string, number>;
  /** Holds the appends with an idempotency key that the store still remembers. */
  readonly remembered: RememberedAppends;
  /** Holds the open reply, or null. */
  partial: {
    /** States the fence of the turn that writes the reply, so that a removal by an older turn spares it. */
    readonly fence: number;
    /** States the id of the turn that the reply belongs to. */
    readonly turnId: string;
    /** Holds the reply in its stored form: encoded when the store has a codec. */
    readonly kept: KeptPayload;
  } | null;
}

/** Holds the sessions of memory stores. Stores over the same data share its sessions. */
export interface MemoryData {
  /** Maps `sessionRefText` of a session's ref to the session. An archived session has its session id as `archiveId`. */
  readonly sessions: Map<string, MemorySession>;
  /** Holds the session ids that are in use. */
  readonly ids: IdClaims;
  /** Holds the agents whose lock is taken, as `namespace/agentId`. */
  readonly locked: Set<string>;
}

/** Creates data that can outlive the stores over it. */
export function createMemoryData(): MemoryData {
  return { sessions: new Map(), ids: new IdClaims(), locked: new Set() };
}

export function emptySession(frame: SessionFrame, entry: KeptPayload): MemorySession {
  return { frame, entry, rows: [], seqById: new Map(), remembered: new RememberedAppends(), partial: null };
}

/**
 * Puts a session under the address of `frame`; null removes the session and frees its id. Archiving drops the open
 * reply.
 */
export function placeSession(data: MemoryData, session: MemorySession, frame: SessionFrame | null): void {
  data.sessions.delete(sessionRefText(session.frame.ref));
  if (frame?.ref.archiveId !== undefined) session.partial = null;
  if (frame === null) data.ids.release(session.frame);
  else data.sessions.set(sessionRefText(frame.ref), Object.assign(session, { frame }));
}
