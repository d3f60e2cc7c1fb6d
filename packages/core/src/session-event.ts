import type { Finding } from "./finding.ts";
import type { SessionRef } from "./session-ref.ts";

/**
 * What happens, for those who watch. Events inform and decide nothing: every failure is also thrown, every change is
 * also a record or a finding. A listener that throws does not disturb the operation.
 */
export type SessionEvent =
  /** A problem was found while the store read. */
  | {
      readonly name: "finding";
      /** The session in which it was found; null when it concerns no single session. */
      readonly ref: SessionRef | null;
      /** The problem, with its place and its remedy. */
      readonly finding: Finding;
    }
  /** An append was acknowledged. */
  | {
      readonly name: "records-appended";
      /** The session that has the records. */
      readonly ref: SessionRef;
      /** The seq of the first record of the append. */
      readonly fromSeq: number;
      /** The seq of the last one. */
      readonly toSeq: number;
    }
  /** A session was created. */
  | {
      readonly name: "session-created";
      /** The session that was created. */
      readonly ref: SessionRef;
      /** The id of the new session. */
      readonly sessionId: string;
    }
  /** A session was archived by a reset, a move or a removal. */
  | {
      readonly name: "session-archived";
      /** The session that was archived. */
      readonly ref: SessionRef;
      /** The id of the archived session. */
      readonly sessionId: string;
    }
  /** A session was purged. */
  | {
      readonly name: "session-removed";
      /** The session that was purged. */
      readonly ref: SessionRef;
      /** The id of the purged session. */
      readonly sessionId: string;
    }
  /** The content of records was replaced by tombstones. */
  | {
      readonly name: "records-redacted";
      /** The session that had the content. */
      readonly ref: SessionRef;
      /** The seqs of the records, in ascending order. */
      readonly seqs: readonly number[];
    }
  /** An entry stated an `updatedAt` that the store did not keep. */
  | {
      readonly name: "updated-at-clamped";
      /** The session that was saved. */
      readonly ref: SessionRef;
      /** The time that the entry stated, in milliseconds since 1970. */
      readonly claimedMs: number;
      /** The time that was kept. */
      readonly storedMs: number;
    };

/** Called with each event of a session. */
export type SessionEventListener = (event: SessionEvent) => void;
