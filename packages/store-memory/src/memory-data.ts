import { ThroughlineError, type RecordHead, type SessionHead, type SessionRef } from "@throughline/core";
import { assertAgentId, assertNamespace, assertSessionId, quote, sessionRefText } from "@throughline/core/store";
import type { RememberedAppends } from "@throughline/core/store";

/** A record as it is kept: bytes, coded when there is a codec. Parsed on every read, so nothing is shared. */
export interface MemoryRow extends RecordHead {
  readonly text: Uint8Array;
  /** The line it was imported as, where that is not the text. */
  readonly source: Uint8Array | null;
  readonly isSourceText: boolean;
}

/** Changed only in synchronous sections: that is the store's whole exclusion. */
export interface MemorySession {
  ref: SessionRef;
  readonly sessionId: string;
  entry: Uint8Array;
  revision: number;
  readonly rows: MemoryRow[];
  readonly ids: Set<string>;
  head: SessionHead;
  readonly createdAtMs: number;
  updatedAtMs: number;
  readonly remembered: RememberedAppends;
}

/** What memory stores keep their sessions in. Stores over the same data hold the same sessions. */
export interface MemoryData {
  /** By `sessionRefText` of the session's ref; an archived one has its session id as `archiveId`. */
  readonly sessions: Map<string, MemorySession>;
  /** The agent and session ids in use, by their case-folded form. */
  readonly ids: Map<string, string>;
}

/** Data that outlives the handles over it. */
export function createMemoryData(): MemoryData {
  return { sessions: new Map(), ids: new Map() };
}

/** Takes the ids of a new session, or none of them. An agent's id may be there already, spelt the same. */
export function claimIds(data: MemoryData, ref: SessionRef, sessionId: string): void {
  assertNamespace(ref.namespace);
  assertAgentId(ref.agentId);
  assertSessionId(sessionId);
  const agentSlot = JSON.stringify([ref.namespace, ref.agentId.toLowerCase()]);
  const slots = [[agentSlot, ref.agentId], [sessionSlot(ref, sessionId), sessionId]] as const;
  for (const [slot, id] of slots) {
    const holder = data.ids.get(slot);
    if (holder === undefined || (holder === id && slot === agentSlot)) continue;
    const code = holder === id ? "SESSION_EXISTS" : "ID_CASE_COLLISION";
    throw new ThroughlineError(code, `The id ${quote(id)} meets ${quote(holder)}.`, { outcome: "not-applied", details: { id, holder } });
  }
  for (const [slot, id] of slots) data.ids.set(slot, id);
}

/** Puts a session under an address; null takes it out of the store. */
export function placeSession(data: MemoryData, session: MemorySession, ref: SessionRef | null): void {
  data.sessions.delete(sessionRefText(session.ref));
  if (ref === null) data.ids.delete(sessionSlot(session.ref, session.sessionId));
  else data.sessions.set(sessionRefText((session.ref = ref)), session);
}

function sessionSlot(ref: SessionRef, sessionId: string): string {
  return JSON.stringify([ref.namespace, ref.agentId.toLowerCase(), sessionId.toLowerCase()]);
}
