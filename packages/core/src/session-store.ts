import type { SessionEntry } from "./session-entry.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendDraft } from "./record-draft.ts";
import type { ForkFacet, MaintenanceFacet, PartialsFacet, SearchFacet, WatchFacet } from "./store-facets.ts";
import type { Durability, StoreCapabilities } from "./store-capabilities.ts";
import type { TurnRequest } from "./turn-lease.ts";
import type { ReadPayload, StoredRecord, RecordPage } from "./stored-records.ts";
import type { SessionHead, SessionState } from "./session-state.ts";

/**
 * The contract of a store, version 1. Small enough for a remote store: every operation is one round trip, knows
 * nothing of what records mean, and either does all it says or throws a ThroughlineError.
 *
 * `seq` is dense from 1 in each session, assigned by the store, never reused. Whoever sees a record sees every
 * record below it. Values handed out belong to the caller: changing them changes nothing in the store.
 * A facet exists exactly when `capabilities` declares it.
 */
export interface SessionStore extends AsyncDisposable {
  /** What the store can do, frozen. */
  readonly capabilities: StoreCapabilities;
  /** Full-text search. Present exactly when `capabilities.search` is true. */
  readonly search?: SearchFacet;
  /** Follows sessions. Present exactly when `capabilities.watch` is true. */
  readonly watch?: WatchFacet;
  /** Forks by sharing records. Present exactly when `capabilities.fork` is true. */
  readonly fork?: ForkFacet;
  /** Verification, repair and backup. Present exactly when `capabilities.maintenance` is true. */
  readonly maintenance?: MaintenanceFacet;
  /** Keeps open replies. Present exactly when `capabilities.partials` is true. */
  readonly partials?: PartialsFacet;

  /**
   * Appends all drafts or none, and resolves once they are as durable as asked. An empty list of drafts is allowed with
   * `entry`, and writes the entry alone.
   *
   * A record, and a field of the entry with the entry around it, is nested at most 200 levels deep.
   *
   * Checks run in this order: the drafts, the existence of the session, the archive, the idempotency key, the turn, the
   * head, and ids in use. So a caller gets the error first that it can do least about. An append with a key that was
   * used before is answered without a check of the turn and the head, if the drafts are the same. The first result is
   * returned as it was, with the head, revision and durability of that time.
   * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED, APPEND_CONFLICT, SESSION_BUSY, TURN_FENCED,
   * RECORD_INVALID, RECORD_ID_TAKEN, RECORD_TOO_LARGE, BATCH_TOO_LARGE, IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED, and
   * what the disk or the network says. `outcome` is always set; "unknown" may be retried only with its key.
   */
  append(ref: SessionRef, drafts: readonly AppendDraft[], options?: AppendOptions): Promise<AppendResult>;

  /**
   * The records between two sequence numbers, page by page; each page is read when it is asked for. All pages are of
   * the session that held the key at the first one, also when it is archived meanwhile.
   * @throws {ThroughlineError} INPUT_INVALID for an option outside its range, SESSION_NOT_FOUND on the first page, and later
   *   when the session was purged
   */
  read<Payload extends ReadPayload = "record">(
    ref: SessionRef,
    options?: ReadOptions<Payload>,
  ): AsyncIterable<RecordPage<Payload>>;

  /**
   * What core's `readWindow` gives, in one round trip where the window fits a page. Absent where `load` and `read` are as
   * good. Callers use core's function, which uses this.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  readWindow?(
    ref: SessionRef,
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly state: SessionState; readonly records: readonly StoredRecord[] }>;

  /** The session's state, or null when there is none. Never creates one. */
  load(ref: SessionRef, options?: LoadOptions): Promise<SessionState | null>;

  /**
   * Writes the whole entry if its revision is still `ifRevision`; null creates the session. An entry with another
   * sessionId begins a new, empty session under the key and archives the old one, in the same commit.
   * @throws {ThroughlineError} REVISION_CONFLICT, SESSION_EXISTS, ID_CASE_COLLISION, SESSION_ID_INVALID,
   * SESSION_ARCHIVED, INPUT_INVALID for a value that is not an entry, or is nested more than 200 levels deep
   */
  save(ref: SessionRef, entry: SessionEntry, options: SaveOptions): Promise<SessionState>;

  /**
   * Sessions by page, in a total order. A session that stays as it is shows up exactly once over all pages. A page may
   * hold fewer than `limit` although others follow, where their entries are large. `nextCursor` is null behind the last session only.
   *
   * A damaged session hides no other: the page is filled with others. A finding event names the damaged one by its key;
   * `load` reports the problem. A store that knows enough of it from elsewhere may list it.
   * @throws {ThroughlineError} INPUT_INVALID, CURSOR_INVALID, and CODEC_FAILED when the codec decodes no session at all
   */
  list(query?: ListQuery): Promise<SessionPage>;

  /**
   * A text that is another one whenever an entry of the agent's sessions may have changed, whoever changed it; null while
   * the store cannot tell. For caches of entries. Absent where it costs as much as reading them.
   */
  entriesMark?(query: Pick<ListQuery, "namespace" | "agentId">): Promise<string | null>;

  /**
   * Runs work while no other holder of the agent's lock runs any, in this process or another. The lock ends with its
   * process, however that ends. The store's own operations need no lock and do not wait for it. Absent where only the
   * lease of a turn can exclude others.
   * @throws {ThroughlineError} STORE_LOCKED after `timeoutMs`, ABORTED while waiting, INPUT_INVALID, LEASE_LOST when the
   *   lock ended while the work ran, and what the work throws
   */
  exclusively?<Result>(
    agent: Pick<ListQuery, "namespace" | "agentId">,
    work: () => Promise<Result>,
    options: StoreLockOptions,
  ): Promise<Result>;

  /**
   * Renames, archives or restores. The records stay where they are: they hang on the session id.
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

  /** Waits for writes under way and lets go of everything. Calling it again does nothing. */
  close(): Promise<void>;
}

/** Options of `SessionStore.append`. */
export interface AppendOptions {
  /** The level the append waits for; one of `capabilities.durabilities`. @default the store's defaultDurability */
  readonly durability?: Durability;
  /** Refuses the append unless the head is this record (null: no main record yet). Side records never matter here. */
  readonly expect?: {
    /** The id of the record that the head must be. */
    readonly head: string | null;
  };
  /** The same key with the same drafts gives the first result again; with others it is refused. At most 256 characters. */
  readonly idempotencyKey?: string;
  /**
   * The caller made the key for this append and never sent it before. A store may skip the search for an earlier append
   * with this key. Left out when the append is repeated. @default false
   */
  readonly isNewKey?: boolean;
  /** Fields to set in the entry in the same commit; `undefined` removes a field. `sessionId` cannot change here. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** The oldest seq a context still needs, stated by the writer. Kept, not interpreted. */
  readonly windowFromSeq?: number;
  /** Moves the head to an earlier record after the batch (null: before the first). The writer vouches that it exists. */
  readonly rewindTo?: string | null;
  /** Opens, renews or closes a turn, or states that the append belongs to it. */
  readonly turn?: TurnRequest;
  /**
   * `stored`: the result has the records as a read returns them (`AppendResult.stored`). This costs no read, unless an
   * earlier append with the key is answered. @default they are not in the result
   */
  readonly return?: "stored";
  /** Ends the wait, not a write that has begun: that one says outcome "unknown" or completes. */
  readonly signal?: AbortSignal;
}

/** Where an appended record is: its seq, its id and its time. */
export interface AppendedRecord {
  /** The record's place in the session, from 1. */
  readonly seq: number;
  /** The record's id. */
  readonly id: string;
  /** The record that it follows; null at a root. */
  readonly parentId: string | null;
  /** True for a side record. */
  readonly side: boolean;
  /** The writer's claim, in milliseconds since 1970; null where the record states no time. */
  readonly tsMs: number | null;
  /** The store's clock, in milliseconds since 1970. */
  readonly storedAtMs: number;
}

/** What an append stored, and the session's head after it. */
export interface AppendResult {
  /** The appended records, in the order of the drafts. */
  readonly records: readonly AppendedRecord[];
  /** The session's head after the append. */
  readonly head: SessionHead;
  /** The entry's revision after the append. */
  readonly revision: number;
  /** The level that the append reached. */
  readonly durability: Durability;
  /** True when an earlier append with the same key gave this result. */
  readonly replayed: boolean;
  /**
   * What `read` gives for these records, in their order: where `return: "stored"` asked for it. Of an earlier append it is
   * what the session holds now. Absent from stores made before it was part of the contract: `appendStored` reads then.
   */
  readonly stored?: readonly StoredRecord[];
}

/** Options of `SessionStore.read`. */
export interface ReadOptions<Payload extends ReadPayload = "record"> {
  /** Only records with a greater seq. @default 0 */
  readonly afterSeq?: number;
  /** Only records with a smaller seq. @default none */
  readonly beforeSeq?: number;
  /** The end from which the records are read. @default "ascending" */
  readonly order?: "ascending" | "descending";
  /** The most records in all. @default no limit */
  readonly limit?: number;
  /** What each record is read with: `record`, `source`, or `head` for its facts alone. @default "record" */
  readonly payload?: Payload;
  /** Ends the read, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** Options of `SessionStore.load`. */
export interface LoadOptions {
  /** Ends the load, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** Options of `SessionStore.save`. */
export interface SaveOptions {
  /** The revision the entry was loaded with; null when there was no session. */
  readonly ifRevision: number | null;
  /** The level the save waits for. @default the store's defaultDurability */
  readonly durability?: Durability;
  /**
   * When the session began that begins here with this save, where it comes from elsewhere; a time to come counts as now.
   * Says nothing of a session that is there already. @default the store's clock
   */
  readonly createdAtMs?: number;
}

/** Which sessions a list holds, and in which order. */
export interface ListQuery {
  /** The namespace whose sessions are listed. @default "" */
  readonly namespace?: string;
  /** Only sessions of this agent. @default all agents */
  readonly agentId?: string;
  /** Whether current sessions, archived ones or both are listed. @default "active" */
  readonly state?: "active" | "archived" | "any";
  /** Compared as it is, upper and lower case apart. */
  readonly keyPrefix?: string;
  /** Sessions updated at or after this time. */
  readonly sinceMs?: number;
  /** Sessions updated before this time. */
  readonly untilMs?: number;
  /** Newest first, or by agent, key and session id. @default "updated" */
  readonly sort?: "updated" | "key";
  /** The most sessions of a page. @default 50, at most 1,000 */
  readonly limit?: number;
  /** From the page before, with the same query. */
  readonly cursor?: string;
  /** Ends the call, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** Options of a lock that a store holds for maintenance. */
export interface StoreLockOptions {
  /** How long to wait for another holder, in milliseconds. */
  readonly timeoutMs: number;
  /** Between two attempts, in milliseconds. */
  readonly pollIntervalMs: number;
  /** Ends the wait. Once the work has begun it is the work's to end. */
  readonly signal?: AbortSignal;
}

/** A page of a list of sessions. */
export interface SessionPage {
  /** The sessions of the page, in the query's order. */
  readonly sessions: readonly SessionState[];
  /** The `cursor` of the next page; null behind the last one. */
  readonly nextCursor: string | null;
}

/** A change of where a session is kept: renamed, archived or restored. */
export type MoveAction =
  /** Keeps the session under another key. */
  | {
      readonly kind: "rename";
      /** The new key, of the same agent. */
      readonly key: string;
    }
  /** Frees the key; the session stays readable by its `archiveId`. */
  | { readonly kind: "archive" }
  /** Only with a ref that carries an archiveId; refused while another session holds the key. */
  | { readonly kind: "restore" };

/** Options of `SessionStore.remove`. */
export interface RemoveOptions {
  /** Deletes the session and every copy of its content, instead of archiving it. @default false */
  readonly purge?: boolean;
}

/** Options of `SessionStore.redact`. */
export interface RedactOptions {
  /** Kept in the tombstone. */
  readonly reason: string;
  /**
   * Fields of the entry that repeat what the records say: removed in the same commit, wherever the store keeps them. Those the
   * entry does not have change nothing. @default none
   */
  readonly entryFields?: readonly string[];
}

/** Which records a redaction replaced. */
export interface RedactResult {
  /** The records that are tombstones now, by seq, in ascending order. */
  readonly seqs: readonly number[];
}
