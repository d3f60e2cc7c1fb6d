import type { Finding } from "./finding.ts";
import type { RecordPage, SessionState } from "./session-store.ts";
import type { SessionRef } from "./session-ref.ts";

export interface SearchQuery {
  readonly text: string;
  readonly namespace?: string;
  readonly agentId?: string;
  readonly key?: string;
  readonly role?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

export interface SearchHit {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly seq: number;
  readonly id: string;
  readonly role: string | null;
  readonly tsMs: number | null;
  readonly score: number;
  readonly snippet: string;
  /** Start and end of each match in the snippet, in UTF-16 units. */
  readonly highlights: readonly (readonly [number, number])[];
}

/** Full text over every session, with an index that may lag behind the log and says by how much. */
export interface SearchFacet {
  search(query: SearchQuery): AsyncIterable<SearchHit>;
  /** Records not yet in the index. */
  lag(): Promise<number>;
}

/** Follows a session from a seq on: every record once, in order, until the signal. */
export interface WatchFacet {
  watch(
    ref: SessionRef,
    options: { readonly afterSeq: number; readonly signal: AbortSignal },
  ): AsyncIterable<RecordPage>;
}

/** A new session that shares the records up to a seq with another, in constant time. */
export interface ForkFacet {
  fork(
    ref: SessionRef,
    target: SessionRef,
    options: { readonly atSeq?: number; readonly sessionId: string },
  ): Promise<SessionState>;
}

export interface MaintenanceFacet {
  /** Reads everything and reports; changes nothing. */
  verify(options?: { readonly full?: boolean; readonly signal?: AbortSignal }): AsyncIterable<Finding>;
  /** Writes repaired copies and keeps the originals. */
  repair(options?: { readonly signal?: AbortSignal }): AsyncIterable<Finding>;
  /** A consistent copy while others write. */
  backup(path: string, options?: { readonly signal?: AbortSignal }): Promise<{ readonly sizeBytes: number }>;
}
