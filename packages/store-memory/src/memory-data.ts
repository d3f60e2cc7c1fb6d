import type { ListQuery } from "@throughline/core";
import { IdClaims, type SessionFrame } from "@throughline/store-kit/internal";
import { RememberedAppends, sessionRefText } from "@throughline/core/internal";
import type { KeptPayload, RecordRow } from "@throughline/store-kit/internal";

/** Holds one session. The store changes it only in synchronous sections, which exclude every other operation. */
export interface MemorySession {
  /** Holds the address, head and revision of the session. */
  frame: SessionFrame;
  /** Holds the entry in its stored form: encoded when the store has a codec. */
  entry: KeptPayload;
  /** Holds the digest of the source that the entry states; null for a session that was not imported. */
  source: string | null;
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
  /** Maps the digest of a purged source, with its namespace and agent, to the time of the purge, in UTC milliseconds. */
  readonly purged: Map<string, number>;
  /** Holds the session ids that are in use. */
  readonly ids: IdClaims;
  /** Holds the agents whose lock is taken, as `namespace/agentId`. */
  readonly locked: Set<string>;
}

/** Creates data that can outlive the stores over it. */
export function createMemoryData(): MemoryData {
  return { sessions: new Map(), purged: new Map(), ids: new IdClaims(), locked: new Set() };
}

export function emptySession(frame: SessionFrame, entry: KeptPayload, source: string | null): MemorySession {
  return { frame, entry, source, rows: [], seqById: new Map(), remembered: new RememberedAppends(), partial: null };
}

/** Notes that a session was purged, so that its source can stay purged. */
export function notePurge({ purged }: MemoryData, { frame, source }: MemorySession, nowMs: number): void {
  if (source !== null) purged.set(JSON.stringify([frame.ref.namespace, source, frame.ref.agentId]), nowMs);
}

/** Returns the time of the last purge of a source, or null. Without an agent, the purges of all agents count. */
export function purgedAtMs(
  { purged }: MemoryData,
  source: string,
  { namespace = "", agentId }: Pick<ListQuery, "namespace" | "agentId">,
): number | null {
  const times = purged.entries().flatMap(([name, atMs]) => {
    const [inNamespace, digest, ofAgent] = JSON.parse(name) as readonly string[];
    return inNamespace === namespace && digest === source && (agentId ?? ofAgent) === ofAgent ? [atMs] : [];
  });
  return times.reduce<number | null>((last, atMs) => Math.max(last ?? atMs, atMs), null);
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
