import type { Finding } from "./finding.ts";
import type { SessionRef } from "./session-ref.ts";

/**
 * Reports what happens in a store. Events inform and decide nothing: every failure is also thrown, and every change is
 * also a record or a finding. A listener that throws does not disturb the operation.
 */
export type SessionEvent =
  /** Reports a problem that the store found while it read. */
  | {
      readonly name: "finding";
      /** States the session with the problem; null when the problem concerns no single session. */
      readonly ref: SessionRef | null;
      /** Holds the problem, with its location and its remedy. */
      readonly finding: Finding;
    }
  /** Reports that an append was acknowledged. */
  | {
      readonly name: "records-appended";
      /** States the session that has the records. */
      readonly ref: SessionRef;
      /** States the seq of the first record of the append. */
      readonly fromSeq: number;
      /** States the seq of the last record of the append. */
      readonly toSeq: number;
    }
  /** Reports that a session was created. */
  | {
      readonly name: "session-created";
      /** States the session that was created. */
      readonly ref: SessionRef;
      /** States the id of the new session. */
      readonly sessionId: string;
    }
  /** Reports that a reset, a move or a removal archived a session. */
  | {
      readonly name: "session-archived";
      /** States the session that was archived. */
      readonly ref: SessionRef;
      /** States the id of the archived session. */
      readonly sessionId: string;
    }
  /** Reports that a session was purged. */
  | {
      readonly name: "session-removed";
      /** States the session that was purged. */
      readonly ref: SessionRef;
      /** States the id of the purged session. */
      readonly sessionId: string;
    }
  /** Reports that tombstones replaced the content of records. */
  | {
      readonly name: "records-redacted";
      /** States the session that had the content. */
      readonly ref: SessionRef;
      /** Lists the seqs of the records, in ascending order. */
      readonly seqs: readonly number[];
    }
  /** Reports that an entry stated an `updatedAt` that the store did not keep. */
  | {
      readonly name: "updated-at-clamped";
      /** States the session that was saved. */
      readonly ref: SessionRef;
      /** States the time of the entry, in milliseconds since 1970. */
      readonly claimedMs: number;
      /** States the time that was kept, in milliseconds since 1970. */
      readonly storedMs: number;
    };

/** Receives each event of a session. */
export type SessionEventListener = (event: SessionEvent) => void;
