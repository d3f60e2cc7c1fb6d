import { customRecord, hasErrorCode, openSession, type SessionRef, type SessionStore } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";

/** Something that must be known afterwards: who asked for it, and when. */
export interface AuditEvent {
  readonly action: "token.create" | "token.revoke" | "redact" | "purge" | "drain" | "refused";
  /** The id of the token that asked; `cli` for the command line on the store itself. */
  readonly by: string;
  /** Whose sessions it is about; null: the server as a whole. */
  readonly namespace: string | null;
  readonly agentId: string | null;
  readonly requestId: string | null;
  /** What it is about: the id of a token, the key of a session, ids of records. Never their content. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** An event as it is kept. */
export interface AuditEntry extends AuditEvent {
  readonly seq: number;
  readonly atMs: number;
}

/** What was asked for, in a session of the store that only grows. Every node of a service writes to the same. */
export interface AuditLog {
  /** Keeps an event before what it says is done, so that nothing is done unseen. */
  write(event: AuditEvent): Promise<void>;
  /** Events behind a seq, the oldest first. */
  read(afterSeq: number): AsyncGenerator<AuditEntry, void, void>;
}

const ref: SessionRef = { namespace: "throughline.audit", agentId: "main", key: "audit" };
const recordType = "throughline-server.audit";

/** @param nowMs the time that events state */
export function createAuditLog(store: SessionStore, nowMs: () => number): AuditLog {
  let isOpen = false;
  return {
    async write(event) {
      if (!isOpen) await openSession(store, ref, { random: systemRandom });
      isOpen = true;
      await store.append(ref, [customRecord(recordType, { ...event, atMs: nowMs() })]);
    },
    async *read(afterSeq) {
      try {
        for await (const { records } of store.read(ref, { afterSeq }))
          for (const { seq, record } of records)
            if (record["customType"] === recordType) yield { ...(record["data"] as Omit<AuditEntry, "seq">), seq };
      } catch (error) {
        // Before the first event there is no such session.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
      }
    },
  };
}
