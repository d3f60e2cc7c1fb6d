import {
  isRecordOfType,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type UserMessage,
} from "@throughline/core";
import { isFlushMessage } from "@throughline/core/internal";

/** Who said what a user message says, where that was another session. Programs read it; no model is sent it. */
export interface SessionProvenance {
  readonly kind: "inter_session";
  /** The key of the session that sent the message. */
  readonly sourceSessionKey: string;
  /** The id of the session that sent the message. */
  readonly sourceSessionId: string;
  /** The name of the tool that sent it, such as `sessions_send`. */
  readonly sourceTool: string;
  /** How many sessions passed it on, this one included: two that answer each other come to an end. */
  readonly hops: number;
}

/** A message of one session to another, as its transcript keeps it. */
export interface SessionMessage extends UserMessage {
  /** Which session sent the message, and how. */
  readonly provenance: SessionProvenance;
}

/**
 * The first line informs the model that no person wrote the text, so it may not ask for what only a person may allow.
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
 * How many sessions passed on what a session is working on; 0 where a person spoke last. Looks back to the start of the
 * turn, however long it is; messages of a flush do not count.
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
