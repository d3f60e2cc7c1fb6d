import type { Finding } from "./finding.ts";
import type { SessionState } from "./session-state.ts";
import type { RecordPage } from "./stored-records.ts";
import type { SessionRef } from "./session-ref.ts";

/** What a search looks for, and in which sessions. */
export interface SearchQuery {
  /** Words that must all occur, `"words that stand together"`, `beginn*`. At most 1,000 characters. */
  readonly text: string;
  /** The namespace that is searched. @default "" */
  readonly namespace?: string;
  /** Only sessions of this agent. @default all agents */
  readonly agentId?: string;
  /** One session, and its archived ones. @default all sessions */
  readonly key?: string;
  /** One session, by its id: of a key that has archived ones, this one only. @default all sessions */
  readonly sessionId?: string;
  /** Whether current sessions, archived ones or both are searched. @default "any" */
  readonly state?: "active" | "archived" | "any";
  /** Of the message, as the record spells it. */
  readonly role?: string;
  /** Records that call this tool, or are its answer. */
  readonly tool?: string;
  /** Records of this time or later; the store's clock counts where a record states no time. */
  readonly sinceMs?: number;
  /** Records before this time. */
  readonly untilMs?: number;
  /** The most hits. @default 20, at most 1,000 */
  readonly limit?: number;
  /** Ends the search, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** A record that matches a search. */
export interface SearchHit {
  /** The session of the record. */
  readonly ref: SessionRef;
  /** The id of that session. */
  readonly sessionId: string;
  /** The record's place in the session. */
  readonly seq: number;
  /** The record's id. */
  readonly id: string;
  /** The message's role; null for other records. */
  readonly role: string | null;
  /** The record's time in milliseconds since 1970; null where it states none. */
  readonly tsMs: number | null;
  /** Higher is better; to be compared within one search only. */
  readonly score: number;
  /** The text around the first matches, with `…` where it was cut. */
  readonly snippet: string;
  /** Start and end of each match in the snippet, in UTF-16 units. */
  readonly highlights: readonly (readonly [number, number])[];
}

/** Full text over every session, with an index that may lag behind the log and says by how much. */
export interface SearchFacet {
  /**
   * The best hits first. Sees every record that was acknowledged before it was asked: it indexes what is missing first,
   * for as long as that takes. A record that several sessions share is found if any of them passes the filters, and
   * only once. The hit names the session that wrote it, or, if that one does not pass, the oldest that does.
   * @throws {ThroughlineError} INPUT_INVALID, ABORTED
   */
  search(query: SearchQuery): AsyncIterable<SearchHit>;
  /** Records not yet in the index. */
  lag(): Promise<number>;
  /** Rebuilds the index from the records. Absent if the store has no index. */
  rebuild?(options?: { readonly signal?: AbortSignal }): Promise<void>;
  /**
   * Adds the records that the index lacks when it is called, as the next search would. Yields how many are left, from the
   * first step to the last, which yields 0 unless others write. Leaving the loop ends it; what is added stays. Absent where
   * nothing has to be added.
   * @throws {ThroughlineError} ABORTED, and what a write of the store throws
   */
  fill?(options?: { readonly signal?: AbortSignal }): AsyncIterable<number>;
}

/**
 * Follows a session from a seq on: every record once, in order, until the signal. `seq` goes back only if another
 * program removed records that were delivered. The store reports a finding, RECORD_MISSING, and continues with the
 * records in their place.
 */
export interface WatchFacet {
  /** Gives pages of records behind `afterSeq` as they are appended, until the signal aborts. */
  watch(
    ref: SessionRef,
    options: { readonly afterSeq: number; readonly signal: AbortSignal },
  ): AsyncIterable<RecordPage>;
}

/**
 * A new session that has the records up to a seq in common with another: one commit, in constant time where a store shares
 * rows. A redaction in one of them reaches all that have the record, and purging one leaves the others whole. It stays with
 * the namespace and the agent of its origin: `forkSession` of core copies where it is to go elsewhere.
 */
export interface ForkFacet {
  /**
   * Creates the session `target` with the records up to `atSeq`, by default all.
   *
   * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, SESSION_ARCHIVED, KEY_AGENT_MISMATCH, INPUT_INVALID
   * and
   * those of new ids
   */
  fork(
    ref: SessionRef,
    target: SessionRef,
    options: { readonly atSeq?: number; readonly sessionId: string },
  ): Promise<SessionState>;

  /**
   * The other sessions, archived ones too, that a redaction of these records reaches, and the records of each. Stores made
   * before it was part of the contract do not have it.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  sharers?(ref: SessionRef, seqs: readonly number[]): Promise<readonly SharedRecords[]>;
}

/** A session and those of its records that it has in common with another one. */
export interface SharedRecords {
  /** The other session. */
  readonly ref: SessionRef;
  /** The id of the other session. */
  readonly sessionId: string;
  /** The seqs of the shared records there. */
  readonly seqs: readonly number[];
}

/**
 * The reply of an open turn as far as it was shown, kept beside the log until the reply itself is appended: text and nothing
 * else. Thinking cannot be sent back unsigned, and no call is half made.
 */
export interface PartialReply {
  readonly v: 1;
  /** The session of the turn. */
  readonly sessionId: string;
  /** The open turn it belongs to. */
  readonly turnId: string;
  /** The number of the turn's lease. */
  readonly fence: number;
  /** Which call of the turn, from 1, and how often it was tried, from 0. */
  readonly step: number;
  /** The attempt within the step, from 0. */
  readonly attempt: number;
  /** The newest record of the session when the call began. */
  readonly afterSeq: number;
  /** The provider that is asked; null where the writer states none. */
  readonly provider: string | null;
  /** The wire shape of the reply; null where the writer states none. */
  readonly api: string | null;
  /** The provider's id of the model; null where the writer states none. */
  readonly model: string | null;
  /** The text that was shown so far. */
  readonly text: string;
  /** The writer's clock, UTC milliseconds. */
  readonly updatedMs: number;
}

/**
 * Keeps the open reply of a session, one at a time. A partial is not a record: lists, reads, searches, forks, copies and
 * exports do not show it. It belongs to its turn: after the turn was closed or taken over, `read` gives null and `write` is
 * refused. A redaction of any record of the session, a purge, a reset and archiving remove it in the same operation. It
 * passes through the codec.
 */
export interface PartialsFacet {
  /**
   * Puts the partial in place of the one before, and resolves once it is durable at the store's default.
   * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, SESSION_ARCHIVED, TURN_FENCED when its turn is not the open
   *   one, RECORD_TOO_LARGE when it is larger than a record may be, CODEC_FAILED
   */
  write(ref: SessionRef, partial: PartialReply): Promise<void>;
  /**
   * The partial of the open turn; null when there is none.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, CODEC_FAILED, STORE_CORRUPT, STORE_VERSION_UNSUPPORTED
   */
  read(ref: SessionRef): Promise<PartialReply | null>;
  /**
   * Removes the partial of the turn with this fence and of earlier turns; a partial of a later turn stays. Without a partial,
   * or without the session, it does nothing.
   */
  remove(ref: SessionRef, fence: number): Promise<void>;
}

/** A derived file, and how many sessions it was made from. */
export interface RebuiltFile {
  /** The file that was written. */
  readonly path: string;
  /** The number of sessions in it. */
  readonly sessions: number;
}

/** Checks and repairs of a whole store. */
export interface MaintenanceFacet {
  /** Reads everything and reports; changes nothing. */
  verify(options?: { readonly full?: boolean; readonly signal?: AbortSignal }): AsyncIterable<Finding>;
  /** Writes repaired copies and keeps the originals. */
  repair(options?: { readonly signal?: AbortSignal }): AsyncIterable<Finding>;
  /**
   * Rebuilds the files that the store derives from its sessions, except the search index, and returns each file. A
   * damaged file is kept under another name. Absent if the store has no such file.
   */
  rebuild?(options?: { readonly signal?: AbortSignal }): AsyncIterable<RebuiltFile>;
  /** A consistent copy while others write. */
  backup(path: string, options?: { readonly signal?: AbortSignal }): Promise<{ readonly sizeBytes: number }>;
}
