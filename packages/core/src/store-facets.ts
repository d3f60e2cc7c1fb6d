import type { Finding } from "./finding.ts";
import type { SessionState } from "./session-state.ts";
import type { RecordPage } from "./stored-records.ts";
import type { SessionRef } from "./session-ref.ts";

/** Sets the words of a search, and the sessions and records that it covers. Either `text` or `anyOf` is set. */
export interface SearchQuery {
  /** Sets the text: words that must all occur, `"words that stand together"`, `beginn*`. At most 1,000 characters. */
  readonly text?: string | undefined;
  /**
   * Sets words of which at least one must occur, in any inflection: `compactions` finds `compaction`. Identifiers match
   * in one piece or by their parts. Records with rarer words, and with more of the words, come first; equal ones newest
   * first. A store may leave out words that very many records hold, as long as three rarer words remain. At most 64
   * words, with at most 1,000 characters altogether.
   */
  readonly anyOf?: readonly string[] | undefined;
  /** Names the namespace that is searched. @default "" */
  readonly namespace?: string | undefined;
  /** Limits the search to sessions of this agent. @default all agents */
  readonly agentId?: string | undefined;
  /** Limits the search to one key, with its archived sessions. @default all sessions */
  readonly key?: string | undefined;
  /** Limits the search to the session with this id, also when its key has archived sessions. @default all sessions */
  readonly sessionId?: string | undefined;
  /** Sets whether current sessions, archived sessions or both are searched. @default "any" */
  readonly state?: "active" | "archived" | "any" | undefined;
  /** Limits the search to messages of this role, as the record spells it. */
  readonly role?: string | undefined;
  /** Limits the search to records that call this tool, or hold its answer. */
  readonly tool?: string | undefined;
  /**
   * Limits the search to records of this time or later, in UTC milliseconds. The store's clock counts when a record
   * states no time.
   */
  readonly sinceMs?: number | undefined;
  /** Limits the search to records before this time, in UTC milliseconds. */
  readonly untilMs?: number | undefined;
  /** Limits the number of hits. @default 20, at most 1,000 */
  readonly limit?: number | undefined;
  /** Aborts the search, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Describes a record that matches a search. */
export interface SearchHit {
  /** States the session of the record. */
  readonly ref: SessionRef;
  /** States the id of that session. */
  readonly sessionId: string;
  /** States the record's position in the session. */
  readonly seq: number;
  /** States the record's id. */
  readonly id: string;
  /** States the message's role; null for other records. */
  readonly role: string | null;
  /** States the record's time in milliseconds since 1970; null when the record states none. */
  readonly tsMs: number | null;
  /** Rates the hit: higher is better. Scores can be compared within one search only. */
  readonly score: number;
  /** Holds the text around the first matches, with `…` where it was cut. */
  readonly snippet: string;
  /** Holds the start and the end of each match in the snippet, in UTF-16 units. */
  readonly highlights: readonly (readonly [number, number])[];
}

/** Searches full text over every session. The index may lag behind the log and reports by how much. */
export interface SearchFacet {
  /**
   * Yields the best hits first. The search covers every record that was acknowledged before the call. It indexes
   * missing records first, for as long as that takes. A record that several sessions share is found only once, if any
   * of the sessions passes the filters. The hit names the session that wrote the record. If that session does not pass,
   * the hit names the oldest session that does.
   * @throws {ThroughlineError} INPUT_INVALID, ABORTED
   */
  search(query: SearchQuery): AsyncIterable<SearchHit>;
  /** Counts the records that are not yet in the index. */
  lag(): Promise<number>;
  /** Rebuilds the index from the records. Absent if the store has no index. */
  rebuild?(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /**
   * Adds the records that the index lacks at the time of the call, as the next search would. Yields the number of
   * records left after each step; the last step yields 0, unless other writers continue. Leaving the loop ends the
   * work, and the added records stay. Absent when no record ever has to be added.
   * @throws {ThroughlineError} ABORTED, and what a write of the store throws
   */
  fill?(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<number>;
}

/**
 * Follows a session from a seq on: every record once, in order, until the signal aborts. `seq` goes back only if
 * another program removed records that were delivered. The store then reports a finding, RECORD_MISSING, and continues
 * with the records in their place.
 */
export interface WatchFacet {
  /** Yields pages of records after `afterSeq` as they are appended, until the signal aborts. */
  watch(
    ref: SessionRef,
    options: { readonly afterSeq: number; readonly signal: AbortSignal },
  ): AsyncIterable<RecordPage>;
}

/**
 * Creates sessions that share the records up to a seq with another session. A fork is one commit, in constant time when
 * the store shares rows. A redaction in one session reaches all sessions that have the record, and purging one session
 * leaves the others whole. A fork stays in the namespace and the agent of its origin; `forkSession` of core copies the
 * records to any other place.
 */
export interface ForkFacet {
  /**
   * Creates the session `target` with the records up to `atSeq`, by default all.
   *
   * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, SESSION_ARCHIVED, KEY_AGENT_MISMATCH, INPUT_INVALID
   * and the errors of new ids
   */
  fork(
    ref: SessionRef,
    target: SessionRef,
    options: { readonly atSeq?: number | undefined; readonly sessionId: string },
  ): Promise<SessionState>;

  /**
   * Returns the other sessions that a redaction of these records reaches, archived sessions included, with the records
   * of each. Stores older than this part of the contract lack the method.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  sharers?(ref: SessionRef, seqs: readonly number[]): Promise<readonly SharedRecords[]>;
  /**
   * States whether forks of a purged session have its records as their own under a codec, so that the key of the purged
   * session may be destroyed. @default false
   */
  readonly recodesOnPurge?: boolean | undefined;
}

/** Names a session, and the records that it shares with another session. */
export interface SharedRecords {
  /** States the address of the other session. */
  readonly ref: SessionRef;
  /** States the id of the other session. */
  readonly sessionId: string;
  /** Lists the seqs of the shared records in the other session. */
  readonly seqs: readonly number[];
}

/**
 * Holds the reply of an open turn as far as it was shown. It is kept beside the log until the reply itself is appended.
 * It holds text only, because thinking cannot be sent back unsigned and no call may be half made.
 */
export interface PartialReply {
  readonly v: 1;
  /** States the id of the turn's session. */
  readonly sessionId: string;
  /** States the id of the open turn. */
  readonly turnId: string;
  /** States the number of the turn's lease. */
  readonly fence: number;
  /** States the number of the call within the turn, from 1. */
  readonly step: number;
  /** States the number of the attempt within the step, from 0. */
  readonly attempt: number;
  /** States the seq of the session's newest record when the call began. */
  readonly afterSeq: number;
  /** Names the provider that is asked; null when the writer states none. */
  readonly provider: string | null;
  /** Names the wire shape of the reply; null when the writer states none. */
  readonly api: string | null;
  /** States the provider's id of the model; null when the writer states none. */
  readonly model: string | null;
  /** Holds the text that was shown so far. */
  readonly text: string;
  /** States the time of the writer's clock, in UTC milliseconds. */
  readonly updatedMs: number;
}

/**
 * Keeps the open reply of a session, one at a time. A partial is not a record: lists, reads, searches, forks, copies
 * and exports do not show it. It belongs to its turn: after the turn was closed or taken over, `read` returns null and
 * `write` is refused. A redaction of any record of the session, a purge, a reset and archiving remove the partial in
 * the same operation. It passes through the codec.
 */
export interface PartialsFacet {
  /**
   * Replaces the previous partial, and resolves once the new partial is durable at the store's default.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_ARCHIVED, TURN_FENCED when its turn is not the
   * open
   *   one, RECORD_TOO_LARGE when it is larger than a record may be, CODEC_FAILED
   */
  write(ref: SessionRef, partial: PartialReply): Promise<void>;
  /**
   * Returns the partial of the open turn, or null without one.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, CODEC_FAILED, STORE_CORRUPT, STORE_VERSION_UNSUPPORTED
   */
  read(ref: SessionRef): Promise<PartialReply | null>;
  /**
   * Removes the partial of the turn with this fence and of earlier turns; a partial of a later turn stays. Without a
   * partial, or without the session, the call does nothing.
   */
  remove(ref: SessionRef, fence: number): Promise<void>;
}

/** Names the namespace and the agent whose sessions may refer to a file. */
export type FileScope = Pick<SessionRef, "namespace" | "agentId">;

/** Describes a file of a store. */
export interface StoredFile {
  /** States the id: the SHA-256 of the bytes, as 64 hex digits. */
  readonly id: string;
  /** Counts the bytes. */
  readonly bytes: number;
  /** States when the file was put last, in UTC milliseconds of the store's clock. */
  readonly storedAtMs: number;
}

/** Describes a file in a list, which also has the files that records name and the store lacks. */
export interface ListedFile extends Pick<StoredFile, "id"> {
  /** Counts the bytes; null when records refer to the file and the store does not have it. */
  readonly bytes: number | null;
  /** States when the file was put last; null when the store does not have it. */
  readonly storedAtMs: number | null;
  /** Counts the records that refer to the file; a record that sessions share counts once for each of them. */
  readonly references: number;
}

/** Sets the bound and the signal of a put. */
export interface PutFileOptions {
  /** Limits the bytes of the file. @default `capabilities.limits.fileBytes`, which it cannot exceed */
  readonly maxBytes?: number | undefined;
  /** Aborts the put, which then keeps nothing and throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the range and the signal of a get. */
export interface GetFileOptions {
  /** Sets the first byte. @default 0 */
  readonly from?: number | undefined;
  /** Sets the byte before which the read ends. @default the end of the file */
  readonly to?: number | undefined;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Keeps files beside the records. A file belongs to one namespace and agent, and is named by the SHA-256 of its bytes:
 * the same bytes are kept once in a scope. Nothing of a scope can be seen in another one.
 *
 * A message refers to a file by a block `{ type: "file", fileId }`. The purge of a session and the redaction of a record
 * also delete each file to which only they referred. A file without any reference stays until `delete`. The bytes pass
 * through the codec; id, size and time stay plain.
 */
export interface FilesFacet {
  /**
   * Stores the bytes and resolves once they are durable at the store's default. No part of a file is visible before that,
   * also when the process ends. Bytes that the scope has already are not kept again; their time is renewed.
   * @throws {ThroughlineError} FILE_TOO_LARGE, INPUT_INVALID, NAMESPACE_INVALID, AGENT_ID_INVALID, ABORTED, CODEC_FAILED,
   *   and what the content throws
   */
  put(scope: FileScope, content: AsyncIterable<Uint8Array>, options?: PutFileOptions): Promise<StoredFile>;
  /**
   * Yields the bytes piece by piece, each read when it is requested. A whole file is compared with its id, and so is a
   * part of a file of at most 256 KiB. A part of a larger file is not compared.
   * @throws {ThroughlineError} FILE_NOT_FOUND, also when the file is deleted meanwhile, INPUT_INVALID for a range outside
   *   of the file, STORE_CORRUPT, CODEC_FAILED, ABORTED
   */
  get(scope: FileScope, id: string, options?: GetFileOptions): AsyncIterable<Uint8Array>;
  /** Returns the file, or null without one. */
  stat(scope: FileScope, id: string): Promise<StoredFile | null>;
  /** Deletes the file, also when records refer to it. Returns whether there was one. */
  delete(scope: FileScope, id: string): Promise<boolean>;
  /** Yields all files of the scope and all missing ones, in pages, by id. */
  list(scope: FileScope, options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<readonly ListedFile[]>;
}

/** Describes a derived file that was rebuilt. */
export interface RebuiltFile {
  /** States the path of the file that was written. */
  readonly path: string;
  /** Counts the sessions in the file. */
  readonly sessions: number;
}

/** Checks and repairs a whole store. */
export interface MaintenanceFacet {
  /** Reads everything and yields findings; changes nothing. */
  verify(options?: {
    readonly full?: boolean | undefined;
    readonly signal?: AbortSignal | undefined;
  }): AsyncIterable<Finding>;
  /** Writes repaired copies, keeps the originals, and yields findings. */
  repair(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<Finding>;
  /**
   * Rebuilds the files that the store derives from its sessions, except the search index, and yields each file. A
   * damaged file is kept under another name. Absent if the store has no such file.
   */
  rebuild?(options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<RebuiltFile>;
  /** Writes a consistent copy to `path` while other processes write. */
  backup(
    path: string,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly sizeBytes: number }>;
  /**
   * Yields the marks that purges of imported sessions left in a namespace, for a copy of its sessions. Absent if the
   * store cannot list them.
   */
  purges?(options?: PurgesOptions): AsyncIterable<readonly PurgedSource[]>;
  /**
   * Adds marks from another store to a namespace, so that an import leaves their sessions purged here too. Of two times
   * of a source the later one stays. Absent if `purges` is.
   * @throws {ThroughlineError} INPUT_INVALID, NAMESPACE_INVALID, AGENT_ID_INVALID
   */
  addPurges?(namespace: string, purges: readonly PurgedSource[]): Promise<void>;
}

/** Selects marks of purges. */
export interface PurgesOptions {
  /** Names the namespace. @default "" */
  readonly namespace?: string | undefined;
  /** Limits the marks to this agent. @default all agents */
  readonly agentId?: string | undefined;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** States when a session of a source was purged last, without the name of the source. */
export interface PurgedSource {
  /** Names the agent of the session. */
  readonly agentId: string;
  /** Holds the digest of the source's format and id: 32 hex digits. */
  readonly digest: string;
  /** States the time of the purge in UTC milliseconds. */
  readonly purgedAtMs: number;
}
