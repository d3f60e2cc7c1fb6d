import {
  isRecordOfType,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type UserMessage,
} from "@throughline/core";
import { isFlushMessage } from "@throughline/core/internal";

/** Identifies the session that wrote a user message. Programs read this field; it is never sent to a model. */
export interface SessionProvenance {
  readonly kind: "inter_session";
  /** Holds the key of the session that sent the message. */
  readonly sourceSessionKey: string;
  /** Holds the id of the session that sent the message. */
  readonly sourceSessionId: string;
  /** Holds the name of the tool that sent the message, such as `sessions_send`. */
  readonly sourceTool: string;
  /**
   * Counts the sessions that passed the message on, including the sender. `maxHops` limits the count, so that two
   * sessions that answer each other stop.
   */
  readonly hops: number;
}

/** Describes a message from one session to another, as the target's transcript stores it. */
export interface SessionMessage extends UserMessage {
  /** States which session sent the message, and through which tool. */
  readonly provenance: SessionProvenance;
}

/**
 * The first line informs the model that no person wrote the text. The model must not treat the text as the permission of
 * a person.
 */
export function sessionMessage(text: string, provenance: SessionProvenance): SessionMessage {
  const { sourceSessionKey } = provenance;
  const head = `[Inter-session message] sourceSession=${JSON.stringify(sourceSessionKey)} isUser=false`;
  return { role: "user", content: `${head}\n${text}`, provenance };
}

export function provenanceFrom(own: SessionState, sourceTool: string, hops: number): SessionProvenance {
  return {
    kind: "inter_session",
    sourceSessionKey: own.ref.key,
    sourceSessionId: own.sessionId,
    sourceTool,
    hops,
  };
}

/**
 * Counts the sessions that passed on the current request; 0 when a person spoke last. The search reads back to the
 * start of the turn, however long the turn is. Messages of a memory flush do not count, because Throughline writes
 * them.
 */
export async function hopsOf(store: SessionStore, ref: SessionRef, signal: AbortSignal): Promise<number> {
  for await (const page of store.read(ref, { order: "descending", signal })) {
    for (const { record } of page.records) {
      if (!isRecordOfType(record, "message") || record.message.role !== "user" || isFlushMessage(record)) continue;
      const { hops } = ((record.message as Partial<SessionMessage>).provenance ?? {}) as Partial<SessionProvenance>;
      return typeof hops === "number" && Number.isFinite(hops) ? hops : 0;
    }
  }
  return 0;
}
