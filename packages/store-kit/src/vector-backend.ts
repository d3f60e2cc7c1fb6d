import type { SessionRef } from "@throughline/core";
import type { NearestQuery, PendingQuery, PendingVectors, VectorPut, VectorScope } from "@throughline/core/internal";
import type { Awaitable } from "./awaitable.ts";

/** Holds a vector as a store keeps it: its numbers in 8 bits each, and their signs for a quick comparison. */
export interface KeptVector {
  /** States the seq of the first record of the text. */
  readonly firstSeq: number;
  /** States the seq of the last record of the text. */
  readonly lastSeq: number;
  /** Numbers the parts of a text that is longer than one vector takes, from 0. */
  readonly part: number;
  /** Multiplied with `values`, it gives the vector with norm 1. */
  readonly scale: number;
  /** Holds the numbers of the vector, in 8 bits each. */
  readonly values: Int8Array;
  /** Holds one bit for each number, which is set where it is above 0. */
  readonly code: Uint8Array;
}

/** Holds the vectors of a range, ready to be kept. */
export interface KeptPut extends Omit<VectorPut, "vectors"> {
  /** Lists the vectors in the order of their texts. */
  readonly vectors: readonly KeptVector[];
  /** Returns a vector as it is kept with the records of this session. Under a codec it is encoded. */
  seal(vector: KeptVector, sessionId: string): KeptVector;
}

/** Numbers a session row within a store, also after a rename. */
export type SessionNumber = number | string;

/** States which vectors a session shows: those of `owner` that end at `toSeq` or before. */
export interface ShownSession {
  /** Numbers the session whose vectors are shown: the session itself, or an origin of the fork. */
  readonly owner: SessionNumber;
  /** States the last seq that the session shares with the owner. */
  readonly toSeq: number;
  /** States the address of the session. */
  readonly ref: SessionRef;
  /** States the id of the session. */
  readonly sessionId: string;
}

/** Holds the code of a kept vector. */
export interface NumberedCode extends Pick<KeptVector, "code"> {
  /** Numbers the vector. A later one has a higher number, and no number is given twice. */
  readonly number: number;
  /** Numbers the session that the vector belongs to. */
  readonly owner: SessionNumber;
}

/** Holds a kept vector that still exists. */
export interface NumberedVector extends Omit<KeptVector, "code"> {
  /** Numbers the vector, as its code does. */
  readonly number: number;
  /** Numbers the session that the vector belongs to. */
  readonly owner: SessionNumber;
}

/** Keeps vectors. A backend decides nothing about their content. */
export interface VectorBackend {
  /** Replaces the vectors of a range in one commit. Returns false when the mark is not that of the session any more. */
  put(ref: SessionRef, put: KeptPut): Awaitable<boolean>;
  /** Deletes the vectors and the progress of every model except `keep`, and returns the number of vectors. */
  forget(scope: VectorScope, keep: string | null): Awaitable<number>;
  /** Returns the sessions whose records have no vectors of the model yet, up to `limit`. */
  pending(scope: VectorScope, query: PendingQuery & { readonly limit: number }): Awaitable<PendingVectors>;
  /** Lists the sessions that a search covers, each before the sessions that were forked from it. */
  shown(query: Pick<NearestQuery, "namespace" | "agentId" | "key" | "state">): Awaitable<readonly ShownSession[]>;
  /** Returns up to `limit` codes of the model in the scope with numbers above `after`, in their order. */
  codes(scope: VectorScope, model: string, after: number, limit: number): Awaitable<readonly NumberedCode[]>;
  /** Returns the ids of the sessions with these numbers, which `seal` got. Only a store with a codec is asked. */
  sessionIds(scope: VectorScope, owners: readonly SessionNumber[]): Awaitable<ReadonlyMap<SessionNumber, string>>;
  /** Returns those of the vectors that still exist. */
  vectors(scope: VectorScope, model: string, numbers: readonly number[]): Awaitable<readonly NumberedVector[]>;
}
