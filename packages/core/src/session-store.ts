import type { SessionEntry } from "./session-entry.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendDraft } from "./record-draft.ts";
import type {
  FilesFacet,
  ForkFacet,
  MaintenanceFacet,
  PartialsFacet,
  SearchFacet,
  WatchFacet,
} from "./store-facets.ts";
import type { VectorsFacet } from "./vectors-facet.ts";
import type { Durability, StoreCapabilities } from "./store-capabilities.ts";
import type { TurnRequest } from "./turn-lease.ts";
import type { ReadPayload, StoredRecord, RecordPage } from "./stored-records.ts";
import type { SessionHead, SessionState } from "./session-state.ts";

/**
 * Defines the contract of a store, version 1. The contract is small enough for a remote store: every operation is one
 * round trip and knows nothing about the meaning of records. An operation either does all it promises or throws a
 * ThroughlineError.
 *
 * `seq` is dense from 1 in each session, assigned by the store, and never reused. A reader that sees a record sees
 * every record below it. Returned values belong to the caller: changing them changes nothing in the store. A facet
 * exists exactly when `capabilities` declares it.
 */
export interface SessionStore extends AsyncDisposable {
  /** States what the store can do, frozen. */
  readonly capabilities: StoreCapabilities;
  /** Searches full text. Present exactly when `capabilities.search` is true. */
  readonly search?: SearchFacet;
  /** Follows sessions. Present exactly when `capabilities.watch` is true. */
  readonly watch?: WatchFacet;
  /** Forks by sharing records. Present exactly when `capabilities.fork` is true. */
  readonly fork?: ForkFacet;
  /** Verifies, repairs and backs up the store. Present exactly when `capabilities.maintenance` is true. */
  readonly maintenance?: MaintenanceFacet;
  /** Keeps open replies. Present exactly when `capabilities.partials` is true. */
  readonly partials?: PartialsFacet;
  /** Keeps files. Present exactly when `capabilities.files` is true. */
  readonly files?: FilesFacet;
  /** Keeps vectors of texts. Present exactly when `capabilities.vectors` is true. */
  readonly vectors?: VectorsFacet;

  /**
   * Appends all drafts or none, and resolves once they are as durable as requested. An empty list of drafts is allowed
   * with `entry`, and writes the entry alone.
   *
   * A record, and a field of the entry with the entry around it, may be nested at most 200 levels deep.
   *
   * Checks run in this order: the drafts, the existence of the session, the archive, the idempotency key, the turn, the
   * head, and ids in use. A caller therefore gets the error first that it can do least about. A repeated append with
   * the same key and the same drafts is answered without a check of the turn and the head. The first result is returned
   * unchanged, with the head, revision and durability of that time.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED, APPEND_CONFLICT, SESSION_BUSY, TURN_FENCED,
   * RECORD_INVALID, RECORD_ID_TAKEN, RECORD_TOO_LARGE, BATCH_TOO_LARGE, IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED, and
   * what the disk or the network says. `outcome` is always set; "unknown" may be retried only with its key.
   */
  append(ref: SessionRef, drafts: readonly AppendDraft[], options?: AppendOptions): Promise<AppendResult>;

  /**
   * Reads the records between two sequence numbers, page by page; each page is read when it is requested. All pages
   * come from the session that held the key at the first page, also when the session is archived meanwhile.
   * @throws {ThroughlineError} INPUT_INVALID for an option outside its range, SESSION_NOT_FOUND on the first page, and
   * later
   *   when the session was purged
   */
  read<Payload extends ReadPayload = "record">(
    ref: SessionRef,
    options?: ReadOptions<Payload>,
  ): AsyncIterable<RecordPage<Payload>>;

  /**
   * Returns the result of core's `readWindow`, in one round trip when the window fits a page. Absent when `load` and
   * `read` are as good. Callers use core's function, which uses this method.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  readWindow?(
    ref: SessionRef,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly state: SessionState; readonly records: readonly StoredRecord[] }>;

  /** Returns the session's state, or null when the session does not exist. Never creates a session. */
  load(ref: SessionRef, options?: LoadOptions): Promise<SessionState | null>;

  /**
   * Writes the whole entry if its revision is still `ifRevision`; null creates the session. An entry with another
   * sessionId starts a new, empty session under the key and archives the old session, in the same commit.
   * @throws {ThroughlineError} REVISION_CONFLICT, SESSION_EXISTS, ID_CASE_COLLISION, SESSION_ID_INVALID,
   * SESSION_ARCHIVED, INPUT_INVALID for a value that is not an entry, or is nested more than 200 levels deep
   */
  save(ref: SessionRef, entry: SessionEntry, options: SaveOptions): Promise<SessionState>;

  /**
   * Lists sessions by page, in a total order. A session that does not change appears exactly once over all pages. A
   * page may hold fewer than `limit` sessions although more follow, when their entries are large. `nextCursor` is null
   * after the last session only.
   *
   * A damaged session hides no other: the page is filled with the next sessions. A finding event names the damaged
   * session by its key; `load` reports the problem. A store that knows enough about the session from another source may
   * list it.
   * @throws {ThroughlineError} INPUT_INVALID, CURSOR_INVALID, and CODEC_FAILED when the codec decodes no session at all
   */
  list(query?: ListQuery): Promise<SessionPage>;

  /**
   * Returns a text that changes whenever an entry of the agent's sessions may have changed, in any process; null while
   * the store cannot decide. Caches of entries use it. Absent when it costs as much as reading the entries.
   */
  entriesMark?(query: Pick<ListQuery, "namespace" | "agentId">): Promise<string | null>;

  /**
   * Runs work while no other holder of the agent's lock runs any, in this process or another. The lock ends with its
   * process, however the process ends. The store's own operations need no lock and do not wait for it. Absent when only
   * the lease of a turn can exclude other writers.
   * @throws {ThroughlineError} STORE_LOCKED after `timeoutMs`, ABORTED while waiting, INPUT_INVALID, LEASE_LOST when
   * the
   *   lock ended while the work ran, and what the work throws
   */
  exclusively?<Result>(
    agent: Pick<ListQuery, "namespace" | "agentId">,
    work: () => Promise<Result>,
    options: StoreLockOptions,
  ): Promise<Result>;

  /**
   * Renames, archives or restores a session. The records do not move, because they belong to the session id.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, SESSION_ARCHIVED, KEY_AGENT_MISMATCH
   */
  move(ref: SessionRef, action: MoveAction): Promise<SessionState>;

  /**
   * Archives the session; with `purge` deletes it and every copy of its content.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  remove(ref: SessionRef, options?: RemoveOptions): Promise<void>;

  /**
   * Replaces the content of records by tombstones with the same seq, id and parentId, everywhere the content is kept.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, RECORD_NOT_FOUND (and then nothing is redacted)
   */
  redact(ref: SessionRef, ids: readonly string[], options: RedactOptions): Promise<RedactResult>;

  /** Waits for running writes and releases all resources. Calling it again does nothing. */
  close(): Promise<void>;
}

/** Sets the conditions, the durability and the turn of an append. */
export interface AppendOptions {
  /**
   * Sets the durability that the append waits for; one of `capabilities.durabilities`.
   * @default the store's defaultDurability
   */
  readonly durability?: Durability | undefined;
  /** Refuses the append unless the head is this record (null: no main record yet). Side records never matter here. */
  readonly expect?:
    | {
        /** States the id of the record that the head must be. */
        readonly head: string | null;
      }
    | undefined;
  /**
   * Makes the append repeatable: the same key with the same drafts returns the first result again. Other drafts are
   * refused. At most 256 characters.
   */
  readonly idempotencyKey?: string | undefined;
  /**
   * States that the caller created the key for this append and never sent it before. A store may then skip the search
   * for an earlier append with this key. Leave it out when the append is repeated.
   * @default false
   */
  readonly isNewKey?: boolean | undefined;
  /** Sets fields of the entry in the same commit; `undefined` removes a field. `sessionId` cannot change here. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined;
  /** States the oldest seq that a context still needs. The store keeps the value and does not interpret it. */
  readonly windowFromSeq?: number | undefined;
  /**
   * Moves the head to an earlier record after the batch (null: before the first record). The writer guarantees that the
   * record exists.
   */
  readonly rewindTo?: string | null | undefined;
  /** Opens, renews or closes a turn, or states that the append belongs to it. */
  readonly turn?: TurnRequest | undefined;
  /**
   * Adds the records to the result as a read returns them (`AppendResult.stored`). This costs no read, unless the
   * result is that of an earlier append with the key.
   * @default they are not in the result
   */
  readonly return?: "stored" | undefined;
  /** Aborts the wait, not a write that has begun. Such a write reports outcome "unknown" or completes. */
  readonly signal?: AbortSignal | undefined;
}

/** States the position, the id and the time of an appended record. */
export interface AppendedRecord {
  /** States the record's position in the session, from 1. */
  readonly seq: number;
  /** States the record's id. */
  readonly id: string;
  /** States the id of the record that this record follows; null at a root. */
  readonly parentId: string | null;
  /** States whether the record is a side record. */
  readonly side: boolean;
  /** States the writer's time in milliseconds since 1970; null when the record states no time. */
  readonly tsMs: number | null;
  /** States the time of the store's clock, in milliseconds since 1970. */
  readonly storedAtMs: number;
}

/** Holds the result of an append, with the session's head after it. */
export interface AppendResult {
  /** Holds the appended records, in the order of the drafts. */
  readonly records: readonly AppendedRecord[];
  /** Holds the session's head after the append. */
  readonly head: SessionHead;
  /** States the entry's revision after the append. */
  readonly revision: number;
  /** States the durability that the append reached. */
  readonly durability: Durability;
  /** States whether an earlier append with the same key returned this result. */
  readonly replayed: boolean;
  /**
   * Holds these records as `read` returns them, in their order, when `return: "stored"` requested them. After a replay
   * it holds the records as the session has them now. Stores older than this part of the contract lack the field;
   * `withStored` then reads the records.
   */
  readonly stored?: readonly StoredRecord[];
}

/** Sets the range, the order and the content of a read. */
export interface ReadOptions<Payload extends ReadPayload = "record"> {
  /** Limits the read to records with a greater seq. @default 0 */
  readonly afterSeq?: number | undefined;
  /** Limits the read to records with a smaller seq. @default none */
  readonly beforeSeq?: number | undefined;
  /** Sets the end from which the records are read. @default "ascending" */
  readonly order?: "ascending" | "descending" | undefined;
  /** Limits the number of records in all pages together. @default no limit */
  readonly limit?: number | undefined;
  /** Sets the content of each record: `record`, `source`, or `head` for its facts alone. @default "record" */
  readonly payload?: Payload | undefined;
  /** Aborts the read, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the signal of a load. */
export interface LoadOptions {
  /** Aborts the load, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Sets the expected revision and the durability of a save. */
export interface SaveOptions {
  /** States the revision that the entry was loaded with; null when there was no session. */
  readonly ifRevision: number | null;
  /** Sets the durability that the save waits for. @default the store's defaultDurability */
  readonly durability?: Durability | undefined;
  /**
   * Sets when a new session began, for a session that comes from elsewhere; a future time counts as now. The option has
   * no effect on a session that exists.
   * @default the store's clock
   */
  readonly createdAtMs?: number | undefined;
}

/** Sets which sessions a list holds, and in which order. */
export interface ListQuery {
  /** Names the namespace whose sessions are listed. @default "" */
  readonly namespace?: string | undefined;
  /** Limits the list to sessions of this agent. @default all agents */
  readonly agentId?: string | undefined;
  /**
   * Sets whether current sessions, archived sessions or both are listed.
   * @default "active"; "any" with `importedFrom`
   */
  readonly state?: "active" | "archived" | "any" | undefined;
  /** Limits the list to sessions that were imported from this source. Upper and lower case of `sourceId` are equal. */
  readonly importedFrom?: ImportSource | undefined;
  /** Limits the list to keys with this prefix; upper and lower case differ. */
  readonly keyPrefix?: string | undefined;
  /** Limits the list to sessions updated at or after this time, in UTC milliseconds. */
  readonly sinceMs?: number | undefined;
  /** Limits the list to sessions updated before this time, in UTC milliseconds. */
  readonly untilMs?: number | undefined;
  /** Sets the order: newest first, or by agent, key and session id. @default "updated" */
  readonly sort?: "updated" | "key" | undefined;
  /** Limits the sessions of a page. @default 50, at most 1,000 */
  readonly limit?: number | undefined;
  /** Continues after the previous page of the same query. */
  readonly cursor?: string | undefined;
  /** Aborts the call, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Names the source of an imported session. The entry of the session states it as `importedFrom.format` with
 * `importedFrom.sourceId`, or with `importedFrom.sessionId` when it has no `sourceId`.
 */
export interface ImportSource {
  /**
   * Names the format of the source, such as `claude-code`. The formats with OpenClaw's lines are equal: `openclaw`,
   * `openclaw-sqlite`, `pi`, `claw0`, `clawcode` and `jsonl`.
   */
  readonly format: string;
  /** States the id that the session has in its source, or its path when the id alone does not identify it. */
  readonly sourceId: string;
}

/** Sets how to wait for a lock that a store holds for maintenance. */
export interface StoreLockOptions {
  /** Limits the wait for another holder, in milliseconds. */
  readonly timeoutMs: number;
  /** Sets the pause between two attempts, in milliseconds. */
  readonly pollIntervalMs: number;
  /** Aborts the wait. Work that has begun must watch the signal itself. */
  readonly signal?: AbortSignal | undefined;
}

/** Holds a page of a list of sessions. */
export interface SessionPage {
  /** Holds the sessions of the page, in the query's order. */
  readonly sessions: readonly SessionState[];
  /** Holds the `cursor` of the next page; null after the last page. */
  readonly nextCursor: string | null;
  /**
   * States when a session of the source in `importedFrom` was purged last, in UTC milliseconds of the store's clock;
   * null when none was. A purge keeps this mark, without the name of the source, so that a repeated import can leave
   * the session purged. Present exactly when the query has `importedFrom` and no `keyPrefix`, because the mark has no
   * key. `agentId` limits it; times and `state` do not.
   */
  readonly purgedAtMs?: number | null;
}

/** Describes a change of a session's address: renamed, archived or restored. */
export type MoveAction =
  /** Keeps the session under another key. */
  | {
      readonly kind: "rename";
      /** Sets the new key, of the same agent. */
      readonly key: string;
    }
  /** Frees the key; the session stays readable by its `archiveId`. */
  | { readonly kind: "archive" }
  /** Restores an archived session, whose ref must carry an archiveId; refused while another session holds the key. */
  | { readonly kind: "restore" };

/** Sets whether a removal archives or purges the session. */
export interface RemoveOptions {
  /** Deletes the session and every copy of its content, instead of archiving it. @default false */
  readonly purge?: boolean | undefined;
}

/** Sets the reason for a redaction, and the entry fields that it removes. */
export interface RedactOptions {
  /** States the reason, which the tombstone keeps. */
  readonly reason: string;
  /**
   * Names fields of the entry that repeat the content of records. They are removed in the same commit, wherever the
   * store keeps them. A field that the entry does not have changes nothing.
   * @default none
   */
  readonly entryFields?: readonly string[] | undefined;
  /**
   * Replaces these texts inside of the records by a mark, and keeps the rest of the records. None is empty.
   * @default a tombstone replaces each record
   */
  readonly texts?: readonly string[] | undefined;
}

/** Lists the records that a redaction replaced. */
export interface RedactResult {
  /** Lists the seqs of the records that are tombstones now, or hold none of the texts, in ascending order. */
  readonly seqs: readonly number[];
}
