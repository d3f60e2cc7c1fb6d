import type { SessionEntry } from "./session-entry.ts";
import type { SessionRef } from "./session-ref.ts";
import type { OpenTurn } from "./turn-lease.ts";

/** States the current position of a session: its newest record, its window and its turn. */
export interface SessionHead {
  /** States the id of the session that the head belongs to. */
  readonly sessionId: string;
  /** States the newest seq, which is also the number of records; 0 for an empty session. */
  readonly lastSeq: number;
  /** States the id of the last main record, or of the record that a rewind chose; null before the first record. */
  readonly headId: string | null;
  /**
   * States the oldest seq of the window, as the last writer stated it. Null means that no writer stated one, and the
   * window is the whole session.
   */
  readonly windowSeq: number | null;
  /** States the number of the newest turn; 0 before the first turn. */
  readonly fence: number;
  /** Holds the open turn, whose lease may have expired; null without an open turn. */
  readonly turn: OpenTurn | null;
}

/** Holds a session as a store knows it: entry, head and revision. */
export interface SessionState {
  /** States the address of the session in the store. */
  readonly ref: SessionRef;
  /** States the session's id. */
  readonly sessionId: string;
  /** States whether the session no longer holds its key. */
  readonly archived: boolean;
  /** Holds the entry, a copy that belongs to the caller. */
  readonly entry: SessionEntry;
  /** States the revision of the entry, which starts at 1 and grows by one with every change. */
  readonly revision: number;
  /** Holds the newest record, the window and the open turn. */
  readonly head: SessionHead;
  /** Counts the records of type "message". */
  readonly messageCount: number;
  /** States when the session began, in milliseconds since 1970. */
  readonly createdAtMs: number;
  /**
   * States the time of the last append or of the entry's own `updatedAt`, in milliseconds since 1970. The time never
   * goes back.
   */
  readonly updatedAtMs: number;
}
