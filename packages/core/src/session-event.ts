import type { Finding } from "./finding.ts";
import type { SessionRef } from "./session-ref.ts";

/**
 * What happens, for those who watch. Events inform and decide nothing: every failure is also thrown, every change is
 * also a record or a finding. A listener that throws does not disturb the operation.
 */
export type SessionEvent =
  | { readonly name: "finding"; readonly ref: SessionRef | null; readonly finding: Finding }
  | { readonly name: "records-appended"; readonly ref: SessionRef; readonly fromSeq: number; readonly toSeq: number }
  | { readonly name: "session-created"; readonly ref: SessionRef; readonly sessionId: string }
  | { readonly name: "session-archived"; readonly ref: SessionRef; readonly sessionId: string }
  | { readonly name: "session-removed"; readonly ref: SessionRef; readonly sessionId: string }
  | { readonly name: "records-redacted"; readonly ref: SessionRef; readonly seqs: readonly number[] }
  | {
      readonly name: "updated-at-clamped";
      readonly ref: SessionRef;
      readonly claimedMs: number;
      readonly storedMs: number;
    };

/** Called with each event of a session. */
export type SessionEventListener = (event: SessionEvent) => void;
