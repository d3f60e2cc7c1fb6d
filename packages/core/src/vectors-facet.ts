import type { SessionRef } from "./session-ref.ts";

/** Names the namespace and the agent whose sessions a request is about. */
export type VectorScope = Pick<SessionRef, "namespace" | "agentId">;

/** Names records whose text has no vectors of a model yet. */
export interface PendingRange {
  /** States the address of the session. */
  readonly ref: SessionRef;
  /** States the id of that session. */
  readonly sessionId: string;
  /** States the seq of the first record. */
  readonly fromSeq: number;
  /** States the seq of the last record. */
  readonly toSeq: number;
  /**
   * States the seq up to which the session had vectors before. The records from `fromSeq` on belong to an exchange that
   * may have grown; one that ends at this seq has not.
   */
  readonly coveredSeq: number;
  /** Changes whenever content of the session is removed. A put with an older mark writes nothing. */
  readonly mark: string;
}

/** Lists what has no vectors of a model yet. */
export interface PendingVectors {
  /** Lists ranges of records, those of the newest sessions first. */
  readonly ranges: readonly PendingRange[];
  /** Counts the records without vectors, also those of ranges that are not listed. */
  readonly records: number;
  /** States whether the scope has vectors of another model. */
  readonly hasOthers: boolean;
}

/** Sets the model and the number of ranges of `VectorsFacet.pending`. */
export interface PendingQuery {
  /** Names the model, as `Embedder.id`. */
  readonly model: string;
  /** Limits the listed ranges. @default 20, at most 1,000 */
  readonly limit?: number | undefined;
  /** Aborts the call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Holds the vector of a text that some records have. */
export interface TextVector {
  /** States the seq of the first record of the text. */
  readonly firstSeq: number;
  /** States the seq of the last record of the text. */
  readonly lastSeq: number;
  /** Numbers the texts of an exchange, from 0. */
  readonly part: number;
  /** Holds the vector. Its length is that of every vector of the model, and its norm is not 0. */
  readonly vector: Float32Array;
}

/** Holds the vectors of a range of records. */
export interface VectorPut extends Pick<PendingRange, "fromSeq" | "toSeq" | "mark"> {
  /** Names the model, as `Embedder.id`. */
  readonly model: string;
  /** States the seq at which the next range starts when the session grows: the first record of its last exchange. */
  readonly resumeSeq: number;
  /** Lists the vectors. None is valid: the records have no text. */
  readonly vectors: readonly TextVector[];
}

/** Sets the vector and the sessions of a search by meaning. */
export interface NearestQuery extends VectorScope {
  /** Names the model, as `Embedder.id`. Only vectors of this model are compared. */
  readonly model: string;
  /** Holds the vector of the question. */
  readonly vector: Float32Array;
  /** Limits the search to one key, with its archived sessions. @default all sessions of the scope */
  readonly key?: string | undefined;
  /** Sets whether current sessions, archived sessions or both are searched. @default "any" */
  readonly state?: "active" | "archived" | "any" | undefined;
  /** Limits the number of hits. @default 50, at most 200 */
  readonly limit?: number | undefined;
  /** Aborts the search, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Describes a text whose vector is near. */
export interface NearestHit extends Pick<TextVector, "firstSeq" | "lastSeq" | "part"> {
  /** States the session of the records. */
  readonly ref: SessionRef;
  /** States the id of that session. */
  readonly sessionId: string;
  /** States the cosine of the angle between both vectors, from -1 to 1. */
  readonly score: number;
}

/**
 * Keeps vectors of texts beside the records, for search by meaning. The store computes no vectors: a filler reads what
 * is pending, asks an embedder, and puts the answers, after the appends and never as a part of one.
 *
 * A redaction, a purge and a retention delete the vectors of what they remove in the same commit. Nothing of a scope can be seen in another one. A text can
 * be guessed from its vector, so a store with a codec keeps vectors encoded.
 */
export interface VectorsFacet {
  /**
   * Stores the vectors of a range in one commit, in place of those that it had. Returns false, without any change, when
   * content of the session was removed since `pending` stated the mark, or the session is no longer at the address.
   * @throws {ThroughlineError} INPUT_INVALID when vectors differ in length from others of the model or are no numbers,
   *   ABORTED
   */
  put(ref: SessionRef, put: VectorPut, options?: { readonly signal?: AbortSignal | undefined }): Promise<boolean>;
  /**
   * Returns the nearest texts, nearest first. Vectors are kept with 8 bits for each number. Those that are rated exactly are
   * chosen by the signs of their numbers, so a near one can be missed.
   * @throws {ThroughlineError} INPUT_INVALID, ABORTED
   */
  nearest(query: NearestQuery): Promise<readonly NearestHit[]>;
  /** Deletes the vectors of a scope, except those of the model `keep`. Returns how many there were. */
  forget(scope: VectorScope, options?: { readonly keep?: string | undefined }): Promise<number>;
  /** Lists what has no vectors of a model yet. @throws {ThroughlineError} INPUT_INVALID, ABORTED */
  pending(scope: VectorScope, query: PendingQuery): Promise<PendingVectors>;
}
