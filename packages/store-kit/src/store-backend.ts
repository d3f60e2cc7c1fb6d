import type { Durability, SessionRef } from "@throughline/core";
import type { RecordHead } from "@throughline/core/internal";
import type { Awaitable } from "./awaitable.ts";
import type { FileBackend } from "./file-backend.ts";
import type { ListPosition } from "./list-page.ts";
import type { SessionFrame } from "./session-frame.ts";
import type { VectorBackend } from "./vector-backend.ts";

/**
 * Holds a session without its entry and its records. It is plain JSON: keep it as one text, or as columns. Objects that
 * `createStore` passes are never changed afterwards, so they can be kept as they are.
 */
export interface SessionRow extends SessionFrame {
  /**
   * Identifies the session for as long as it exists, also after a rename; no other session of the store ever has this
   * id. Keep the records and fields of the session under it.
   */
  readonly id: string;
  /** Changes with every commit and never repeats. `StoreChange.expect` compares it. */
  readonly version: string;
  /** Counts the records of type "message". */
  readonly messageCount: number;
  /** Counts the bytes of all records. */
  readonly recordBytes: number;
  /** Identifies the source of an imported session in a list with `importedFrom`; null for any other session. */
  readonly sourceDigest: string | null;
  /** Numbers the keyed appends that are remembered. */
  readonly appends: {
    /** States the number of the oldest remembered append. */
    readonly first: number;
    /** States the number of the next append. */
    readonly next: number;
    /** States the time of the newest append that was forgotten; -1 before the first. */
    readonly horizonMs: number;
  };
}

/** Holds a session row with its entry. */
export interface KeptSession {
  /** Holds the session row. */
  readonly row: SessionRow;
  /** Holds the entry as text, which only `createStore` reads. */
  readonly entry: string;
}

/** Holds a record in the form that a backend keeps, as plain JSON. */
export interface KeptRecord extends RecordHead {
  /** Holds the record as text, which only `createStore` reads. */
  readonly text: string;
  /** Holds the imported line when it differs from the text, in a form that only `createStore` reads; else null. */
  readonly source: string | null;
  /** States whether the imported line is text. */
  readonly isSourceText: boolean;
  /**
   * Lists the ids of the files that the record refers to; absent without any. A backend with `files` deletes a file in
   * the commit that removes the last record of its namespace and agent that lists it.
   */
  readonly files?: readonly string[];
}

/** Lists pairs of a name and its new value; null removes the name. */
export type FieldWrites = readonly (readonly [name: string, value: string | null])[];

/** Describes what one commit does to one session. */
export interface SessionChange {
  /** Holds the row before the commit; null creates the session. */
  readonly before: SessionRow | null;
  /**
   * Holds the row after the commit, whose `ref` may differ from that before; null deletes the session with all records
   * and fields.
   */
  readonly after: SessionRow | null;
  /** Holds the new entry; absent keeps the entry. */
  readonly entry?: string;
  /** Lists the records to add behind the last record, in order of seq. `seqsOf` finds them by their ids. */
  readonly append: readonly KeptRecord[];
  /** Lists the records that replace the records with the same seq and id. No copy of the old content may stay. */
  readonly replace: readonly KeptRecord[];
  /** Lists the fields of the session to write. */
  readonly fields: FieldWrites;
}

/** Describes one commit: what must still hold, and what to write. All of it happens or nothing. */
export interface StoreChange {
  /** Names the namespace of all sessions of the change. */
  readonly namespace: string;
  /** Lists addresses with the version that must be there; null means that no session may be there. */
  readonly expect: readonly { readonly ref: SessionRef; readonly version: string | null }[];
  /** Lists fields of the namespace with the value that must be there; null means none. */
  readonly expectFields: FieldWrites;
  /** Lists the fields of the namespace to write. */
  readonly fields: FieldWrites;
  /** Lists the changes of sessions, to be made in this order: an address may be left before it is taken again. */
  readonly sessions: readonly SessionChange[];
  /** States the durability that the commit waits for, one of those that the store declares. */
  readonly durability: Durability;
}

/** Describes the sessions that a page of a list needs. */
export interface ListScan {
  /** Names the namespace. */
  readonly namespace: string;
  /** Names the only agent that is listed; null lists all agents. */
  readonly agentId: string | null;
  /** States whether current sessions, archived sessions or both are listed. */
  readonly state: "active" | "archived" | "any";
  /** Limits the list to keys with this prefix; empty for all. */
  readonly keyPrefix: string;
  /** Limits the list to sessions whose `sourceDigest` is this text; null for all. */
  readonly sourceDigest: string | null;
  /** Limits the list to sessions updated at or after this time in UTC milliseconds, or `-Infinity`. */
  readonly sinceMs: number;
  /** Limits the list to sessions updated before this time in UTC milliseconds, or `Infinity`. */
  readonly untilMs: number;
  /** Sets the order: newest `updatedAtMs` first, or by agent, key and session id. Equal times are in that order, too. */
  readonly sort: "updated" | "key";
  /**
   * Sets the position after which the page starts: minus `updatedAtMs` (0 with `sort: "key"`), agent, key, session id.
   * Null starts at the first session.
   */
  readonly after: ListPosition | null;
  /** States how many sessions the page needs. */
  readonly limit: number;
  /** Returns whether a session belongs to the list and follows `after`. */
  includes(row: SessionRow): boolean;
}

/**
 * Holds the reads and writes of a store; `createStore` makes a store of them. A backend decides nothing: it keeps
 * session rows by address, records by number, and two kinds of fields, which are maps from names to texts.
 *
 * An error of a read means that nothing was written. An error of `commit` means that the outcome is unknown, unless it
 * is a `ThroughlineError` with another `outcome`.
 */
export interface StoreBackend {
  /**
   * Returns the session with exactly this namespace, agent, key and `archiveId`, or null. An absent `archiveId` is the
   * address of the key's current session.
   */
  find(ref: SessionRef): Awaitable<KeptSession | null>;
  /**
   * Returns the records of a session from one seq to another, both included, in ascending order. Fewer records mean that
   * the session was deleted meanwhile.
   */
  records(row: SessionRow, fromSeq: number, toSeq: number): Awaitable<readonly KeptRecord[]>;
  /** Returns the seqs of the records with these ids in the order of the ids, null for an id that no record has. */
  seqsOf(row: SessionRow, ids: readonly string[]): Awaitable<readonly (number | null)[]>;
  /** Returns the values of a session's fields in the order of the names, null for an absent field. */
  sessionFields(row: SessionRow, names: readonly string[]): Awaitable<readonly (string | null)[]>;
  /** Returns the values of a namespace's fields in the order of the names, null for an absent field. */
  namespaceFields(namespace: string, names: readonly string[]): Awaitable<readonly (string | null)[]>;
  /**
   * Returns at least the first `limit` sessions that the scan includes, if there are as many. Other sessions may be
   * among them, in any order, because `createStore` filters and sorts. Returning every session of the namespace is
   * right, and slow when there are many.
   */
  list(scan: ListScan): Awaitable<readonly KeptSession[]>;
  /**
   * Checks `expect` and `expectFields`, and writes the change, in one transaction or one atomic script. Returns false
   * when something differs; then nothing was written, and `createStore` reads and plans again.
   */
  commit(change: StoreChange): Awaitable<boolean>;
  /**
   * Takes the lock of an agent, or returns null at once while another holder has it. The lock must end with its process.
   * Absent when the backend has no such lock; the store then lacks `exclusively`.
   * @returns the function that frees the lock; it throws LEASE_LOST when the lock had ended before.
   */
  tryLock?(agent: {
    readonly namespace: string;
    readonly agentId: string;
  }): Awaitable<(() => void | Promise<void>) | null>;
  /** Keeps files. Absent when the database keeps none, and the store then has no files. */
  readonly files?: FileBackend;
  /**
   * Keeps vectors of texts. It deletes them in the commit that replaces or deletes their records. Absent when the database
   * keeps none. A store with a codec does not use it.
   */
  readonly vectors?: VectorBackend;
  /** Frees the resources of the backend, after the last operation. */
  close?(): Promise<void>;
}
