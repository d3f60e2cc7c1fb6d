import type { SessionEntry } from "./session-entry.ts";
import type { SessionRef } from "./session-ref.ts";
import type { OpenTurn } from "./turn-lease.ts";

/** Where a session stands. */
export interface SessionHead {
  /** The session that the head belongs to. */
  readonly sessionId: string;
  /** 0 when empty. Also the number of records. */
  readonly lastSeq: number;
  /** The last main record, or where a rewind put the head; null before the first. */
  readonly headId: string | null;
  /** As the last writer stated it; null when nobody did: the window is everything. */
  readonly windowSeq: number | null;
  /** The number of the newest turn; 0 before the first. */
  readonly fence: number;
  /** The turn that is open, its lease perhaps run out. */
  readonly turn: OpenTurn | null;
}

/** A session as a store knows it: entry, head and revision. */
export interface SessionState {
  /** Where the store has the session. */
  readonly ref: SessionRef;
  /** The session's id. */
  readonly sessionId: string;
  /** True for a session that no longer holds its key. */
  readonly archived: boolean;
  /** The entry, a copy that belongs to the caller. */
  readonly entry: SessionEntry;
  /** Grows by one with every change of the entry, from 1. */
  readonly revision: number;
  /** The newest record, the window and the open turn. */
  readonly head: SessionHead;
  /** Records of type "message". */
  readonly messageCount: number;
  /** When the session began, in milliseconds since 1970. */
  readonly createdAtMs: number;
  /** Of the last append or of the entry's own `updatedAt`; never goes back. */
  readonly updatedAtMs: number;
}
