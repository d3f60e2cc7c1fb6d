import type { KeptPayload } from "@throughline/store-kit/internal";
import type Database from "better-sqlite3";
import { lazily } from "./lazily.ts";
import { purgedNamespace } from "./rows.ts";
import type {
  EntryRow,
  KeyedAppendRow,
  PurgedSourceRow,
  RecordContentRow,
  RecordHeadRow,
  RecordTextRow,
  Session,
  SessionRow,
} from "./rows.ts";
import { checkedSession } from "./row-checksums.ts";

/**
 * Holds the answer of a checkpoint: whether a lock was in the way, the pages of the log, and how many of them are in
 * the database.
 */
export type LogRow = readonly [busy: number, pages: number, written: number];

interface PayloadRefs {
  readonly textPayload: number | null;
  readonly sourcePayload: number | null;
}

/** Holds the open reply of a session. */
export interface PartialRow {
  readonly fence: number;
  readonly turnId: string;
  readonly partial: KeptPayload;
}

interface ChildRow {
  readonly session: Session;
  readonly parentId: string;
  readonly seq: number;
}

type Address = [namespace: string, agentId: string, key: string];
type Statement<Parameters extends unknown[], Row = unknown> = Database.Statement<Parameters, Row>;
type RecordRange = [session: Session, afterSeq: number, beforeSeq: number, limit: number];

export interface Statements {
  readonly begin: Statement<[]>;
  readonly beginRead: Statement<[]>;
  /** Returns a number that changes whenever another connection commits. */
  readonly dataVersion: Statement<[], number>;
  /** Takes addresses: namespace, agent, key, and the id of an archived session or null. */
  readonly watchStarts: Statement<
    [addresses: string],
    { readonly place: number; readonly session: Session; readonly lastSeq: number }
  >;
  readonly lastSeqs: Statement<[numbers: string], { readonly session: Session; readonly lastSeq: number }>;
  readonly commit: Statement<[]>;
  /** Returns the length of the log without changing anything. */
  readonly logState: Statement<[], LogRow>;
  /**
   * Writes the log into the database, as far as no reader needs it. If that was all of it, the next writer restarts the
   * log.
   */
  readonly writeBack: Statement<[], LogRow>;
  /** Does the same while no other process may write, so the log does restart. */
  readonly beginLogAnew: Statement<[], LogRow>;
  readonly rollback: Statement<[]>;
  readonly savepoint: Statement<[]>;
  readonly release: Statement<[]>;
  readonly rollbackToSavepoint: Statement<[]>;
  readonly findCurrent: Statement<Address, SessionRow>;
  readonly findArchived: Statement<[...Address, sessionId: string], SessionRow>;
  /** Finds the same session by another index. A session that only this index finds is hidden by a damaged index. */
  readonly hiddenCurrent: Statement<Address>;
  readonly hiddenArchived: Statement<[...Address, sessionId: string]>;
  readonly findSession: Statement<[Session], SessionRow>;
  /** Returns the row without comparing its checksum. */
  readonly rawSession: Statement<[Session], SessionRow>;
  readonly sealSession: Statement<[crc: number, Session]>;
  readonly findIds: Statement<[namespace: string, agentId: string, sessionId: string], Pick<SessionRow, "session_id">>;
  readonly findAgent: Statement<[namespace: string, agentId: string], Pick<SessionRow, "agent_id">>;
  readonly insertSession: Statement<[Omit<SessionRow, "session">]>;
  /** Sets every column that an append changes, in the order of `changingColumns`, then the session. */
  readonly updateSession: Statement<unknown[]>;
  /** Sets only the columns that a plain append changes. */
  readonly advanceSession: Statement<
    [lastSeq: number, headId: string | null, messageCount: number, updatedAtMs: number, crc: number, Session]
  >;
  readonly countKeyed: Statement<[next: number, rows: number, sweepAt: number, horizonMs: number, Session]>;
  readonly placeSession: Statement<[slot: number, Session]>;
  readonly setSource: Statement<[digest: string | null, Session]>;
  readonly countBySource: Statement<[namespace: string, digest: string], number>;
  readonly countByDigest: Statement<[digest: string, namespace: string], number>;
  readonly notePurge: Statement<[PurgedSourceRow]>;
  readonly findPurges: Statement<[namespace: string, digest: string], PurgedSourceRow>;
  readonly nextPurges: Statement<[after: number, limit: number], PurgedSourceRow & { readonly purge: number }>;
  readonly moveSession: Statement<[key: string, archived: number, Session]>;
  readonly deleteSession: Statement<[Session]>;
  readonly deleteRecords: Statement<[Session, toSeq: number]>;
  readonly addMessages: Statement<[count: number, Session]>;
  readonly findEntry: Statement<[Session], EntryRow>;
  readonly writeEntry: Statement<[Session, KeptPayload, crc: number]>;
  readonly insertRecord: Statement<unknown[]>;
  /**
   * Inserts a record whose text is its source and stands in the row, as with nearly all records. Every bound value
   * costs time.
   */
  readonly insertPlainRecord: Statement<unknown[]>;
  readonly replaceRecord: Statement<unknown[]>;
  readonly findPayload: Statement<[hash: Uint8Array], number>;
  readonly insertPayload: Statement<[hash: Uint8Array, content: KeptPayload]>;
  readonly readPayload: Statement<[payload: number], { readonly content: KeptPayload }>;
  readonly payloadsOf: Statement<[Session, fromSeq: number, toSeq: number], PayloadRefs>;
  /** Deletes a payload unless a record refers to it. */
  readonly dropPayload: Statement<[payload: number]>;
  readonly forksOf: Statement<[Session], SessionRow>;
  readonly setOrigin: Statement<[origin: Session | null, seq: number | null, Session]>;
  /** `exchanged` is bound twice, because SQL has no exclusive or: it is (a | b) - (a & b). */
  readonly giveRecords: Statement<
    [to: Session, exchanged: number, exchanged: number, from: Session, afterSeq: number, toSeq: number]
  >;
  readonly giveIds: Statement<[to: Session, from: Session, afterSeq: number, toSeq: number]>;
  readonly giveChildren: Statement<[to: Session, from: Session, afterSeq: number, toSeq: number]>;
  readonly childrenEntered: Statement<[], number>;
  /** Returns the number that ends the next slice of records, or null when there are none. */
  readonly endOfSlice: Statement<[afterRecord: number, rows: number], number | null>;
  readonly enterChildren: Statement<[afterRecord: number, toRecord: number]>;
  readonly childrenIn: Statement<[afterRecord: number, toRecord: number], ChildRow>;
  readonly takeOutChild: Statement<[Session, parentId: string, seq: number]>;
  readonly setChildrenEntered: Statement<[toRecord: number]>;
  readonly clearChildren: Statement<[]>;
  readonly newestRecord: Statement<[], number | null>;
  /** Returns every session that shows a record. */
  readonly sharersOf: Statement<[Session, seq: number], SessionRow>;
  readonly countMessages: Statement<[Session, afterSeq: number, toSeq: number], number>;
  readonly lastMainRecord: Statement<[Session, afterSeq: number, toSeq: number], { readonly id: string }>;
  readonly readHeads: Record<"ascending" | "descending", Statement<RecordRange, RecordHeadRow>>;
  readonly readRecords: Record<"ascending" | "descending", Statement<RecordRange, RecordContentRow>>;
  /**
   * Returns the columns that the text of a record does not state. Rows are arrays, because a page has thousands of
   * them.
   */
  readonly readTexts: Record<"ascending" | "descending", Statement<RecordRange, RecordTextRow>>;
  readonly catchUpIds: Statement<[Session, afterSeq: number, toSeq: number]>;
  readonly insertId: Statement<[Session, id: string, seq: number]>;
  readonly findId: Statement<[Session, id: string], { readonly seq: number }>;
  readonly findKeyed: Statement<[Session, key: string], KeyedAppendRow>;
  readonly insertKeyed: Statement<
    [
      Session,
      key: string,
      digest: Uint8Array,
      number: number,
      atMs: number,
      fromSeq: number,
      count: number,
      result: string,
    ]
  >;
  readonly renewKeyed: Statement<[Session, key: string]>;
  readonly oldKeyed: Statement<
    [Session, beforeNumber: number, beforeMs: number],
    { readonly idempotency_key: string; readonly at_ms: number }
  >;
  readonly deleteKeyed: Statement<[Session, key: string]>;
  readonly writePartial: Statement<[Session, fence: number, turnId: string, KeptPayload]>;
  readonly findPartial: Statement<[Session], PartialRow>;
  readonly deletePartial: Statement<[Session, toFence: number]>;
}

/** Lists the columns in the order of `insertRecord`. They are read under the names of core. */
const headColumns = ["seq", "id", "parent_id", "type", "side", "ts_ms", "stored_at_ms", "bytes", "crc"];
const textColumns = "seq, side, ts_ms, stored_at_ms, bytes, crc, head_crc, text, source_form, source";
const readColumns = [...headColumns, "role", "tool_name", "head_crc"];
const contentColumns = ["text", "source_form", "source", "text_payload", "source_payload"];

function selected(columns: readonly string[]): string {
  const camel = (name: string): string => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return columns.map((name) => (camel(name) === name ? name : `${name} AS ${camel(name)}`)).join(", ");
}

const sessionColumns: readonly (keyof SessionRow)[] = [
  "namespace",
  "agent_id",
  "key",
  "archived",
  "session_id",
  "revision",
  "last_seq",
  "head_id",
  "window_seq",
  "fence",
  "turn",
  "message_count",
  "updated_at_ms",
  "ids_to_seq",
  "created_at_ms",
  "updated_slot",
  "keyed_next",
  "keyed_rows",
  "keyed_sweep_at",
  "keyed_horizon_ms",
  "origin",
  "origin_seq",
  "source_digest",
  "crc",
];

/** Lists the columns of a session's row that an append changes. None of them is in an index. */
export const changingColumns: readonly (keyof SessionRow)[] = sessionColumns.slice(
  sessionColumns.indexOf("revision"),
  sessionColumns.indexOf("created_at_ms"),
);

/** Session columns are written in the order of the lists above. */
const texts: Readonly<Record<Exclude<keyof Statements, "readHeads" | "readRecords" | "readTexts">, string>> = {
  begin: "BEGIN IMMEDIATE",
  dataVersion: "PRAGMA data_version",
  beginRead: "BEGIN",
  commit: "COMMIT",
  logState: "PRAGMA wal_checkpoint(NOOP)",
  writeBack: "PRAGMA wal_checkpoint(PASSIVE)",
  beginLogAnew: "PRAGMA wal_checkpoint(RESTART)",
  rollback: "ROLLBACK",
  savepoint: "SAVEPOINT one",
  release: "RELEASE one",
  rollbackToSavepoint: "ROLLBACK TO one",
  // The index is named, because with statistics the planner takes the index that also holds the archived sessions of
  // the key.
  findCurrent:
    "SELECT * FROM store_sessions INDEXED BY store_sessions_current WHERE namespace = ? AND agent_id = ? AND key = ? AND archived = 0",
  findArchived:
    "SELECT * FROM store_sessions WHERE namespace = ? AND agent_id = ? AND key = ? AND session_id = ? AND archived = 1",
  hiddenCurrent:
    "SELECT session FROM store_sessions INDEXED BY store_sessions_key WHERE namespace = ? AND agent_id = ? AND key = ? AND archived = 0",
  hiddenArchived: `SELECT session FROM (SELECT ? AS n, ? AS a, ? AS k, ? AS i) CROSS JOIN store_sessions INDEXED BY store_sessions_id
    ON namespace = n AND agent_id = a COLLATE NOCASE AND session_id = i COLLATE NOCASE
    WHERE agent_id = a AND key = k AND session_id = i AND archived = 1`,
  // The rest of a purged session is no session.
  findSession: `SELECT * FROM store_sessions WHERE session = ? AND namespace <> '${purgedNamespace}'`,
  rawSession: `SELECT * FROM store_sessions WHERE session = ? AND namespace <> '${purgedNamespace}'`,
  sealSession: "UPDATE store_sessions SET crc = ? WHERE session = ?",
  lastSeqs: `SELECT session, last_seq AS lastSeq FROM store_sessions
    WHERE session IN (SELECT value FROM json_each(?)) AND namespace <> '${purgedNamespace}'`,
  watchStarts: `SELECT w.key AS place, s.session, s.last_seq AS lastSeq FROM json_each(?) w CROSS JOIN store_sessions s INDEXED BY store_sessions_key
    WHERE s.namespace = w.value ->> 0 AND s.agent_id = w.value ->> 1 AND s.key = w.value ->> 2
      AND CASE WHEN w.value ->> 3 IS NULL THEN s.archived = 0 ELSE s.archived = 1 AND s.session_id = w.value ->> 3 END`,
  findIds:
    "SELECT session_id FROM store_sessions WHERE namespace = ? AND agent_id = ? COLLATE NOCASE AND session_id = ? COLLATE NOCASE",
  findAgent: "SELECT agent_id FROM store_sessions WHERE namespace = ? AND agent_id = ? COLLATE NOCASE LIMIT 1",
  insertSession: `INSERT INTO store_sessions (${sessionColumns.join(", ")}) VALUES (${sessionColumns.map((each) => `@${each}`).join(", ")})`,
  updateSession: `UPDATE store_sessions SET ${changingColumns.map((each) => `${each} = ?`).join(", ")}, crc = ? WHERE session = ?`,
  advanceSession:
    "UPDATE store_sessions SET last_seq = ?, head_id = ?, message_count = ?, updated_at_ms = ?, crc = ? WHERE session = ?",
  countKeyed:
    "UPDATE store_sessions SET keyed_next = ?, keyed_rows = ?, keyed_sweep_at = ?, keyed_horizon_ms = ? WHERE session = ?",
  placeSession: "UPDATE store_sessions SET updated_slot = ? WHERE session = ?",
  setSource: "UPDATE store_sessions SET source_digest = ? WHERE session = ?",
  countBySource:
    "SELECT count(*) FROM store_sessions INDEXED BY store_sessions_source WHERE namespace = ? AND source_digest = ?",
  countByDigest:
    "SELECT count(*) FROM store_sessions INDEXED BY store_sessions_digest WHERE source_digest = ? AND namespace = ?",
  notePurge: `INSERT INTO store_purged_sources (namespace, agent_id, source_digest, purged_at_ms, crc)
    VALUES (@namespace, @agent_id, @source_digest, @purged_at_ms, @crc)
    ON CONFLICT (namespace, source_digest, agent_id) DO UPDATE SET purged_at_ms = excluded.purged_at_ms, crc = excluded.crc`,
  findPurges: "SELECT * FROM store_purged_sources WHERE namespace = ? AND source_digest = ?",
  nextPurges: "SELECT * FROM store_purged_sources WHERE purge > ? ORDER BY purge LIMIT ?",
  moveSession: "UPDATE store_sessions SET key = ?, archived = ? WHERE session = ?",
  deleteSession: "DELETE FROM store_sessions WHERE session = ?",
  deleteRecords: "DELETE FROM store_records WHERE session = ? AND seq <= ?",
  findEntry: "SELECT entry, crc FROM store_entries WHERE session = ?",
  writeEntry:
    "INSERT INTO store_entries (session, entry, crc) VALUES (?, ?, ?) ON CONFLICT (session) DO UPDATE SET entry = excluded.entry, crc = excluded.crc",
  insertRecord: `INSERT INTO store_records (session, ${[...headColumns, "role", "tool_name", ...contentColumns, "head_crc"].join(", ")}) VALUES (${Array.from({ length: 18 }, () => "?").join(", ")})`,
  insertPlainRecord: `INSERT INTO store_records (session, ${[...headColumns, "role", "tool_name", "text", "head_crc"].join(", ")}) VALUES (${Array.from({ length: 14 }, () => "?").join(", ")})`,
  replaceRecord: `UPDATE store_records SET ${["type", "bytes", "crc", "role", "tool_name", ...contentColumns, "head_crc"].map((name) => `${name} = ?`).join(", ")} WHERE session = ? AND seq = ?`,
  addMessages: "UPDATE store_sessions SET message_count = message_count + ? WHERE session = ?",
  findPayload: "SELECT payload FROM store_payloads WHERE hash = ?",
  insertPayload: "INSERT INTO store_payloads (hash, content) VALUES (?, ?)",
  readPayload: "SELECT content FROM store_payloads WHERE payload = ?",
  payloadsOf: `SELECT text_payload AS textPayload, source_payload AS sourcePayload FROM store_records
    WHERE session = ? AND seq >= ? AND seq <= ? AND (text_payload IS NOT NULL OR source_payload IS NOT NULL)`,
  dropPayload: `DELETE FROM store_payloads WHERE payload = ?
    AND NOT EXISTS (SELECT 1 FROM store_records WHERE text_payload = store_payloads.payload)
    AND NOT EXISTS (SELECT 1 FROM store_records WHERE source_payload = store_payloads.payload)`,
  forksOf: "SELECT * FROM store_sessions WHERE origin = ? ORDER BY session",
  setOrigin: "UPDATE store_sessions SET origin = ?, origin_seq = ? WHERE session = ?",
  giveRecords:
    "UPDATE store_records SET session = ?, head_crc = (head_crc | ?) - (head_crc & ?) WHERE session = ? AND seq > ? AND seq <= ?",
  giveIds: "UPDATE store_record_ids SET session = ? WHERE session = ? AND seq > ? AND seq <= ?",
  giveChildren: "UPDATE store_children SET session = ? WHERE session = ? AND seq > ? AND seq <= ?",
  childrenEntered: "SELECT entered_to FROM store_children_state WHERE one = 1",
  endOfSlice: "SELECT max(record) FROM (SELECT record FROM store_records WHERE record > ? ORDER BY record LIMIT ?)",
  enterChildren: `INSERT OR IGNORE INTO store_children (session, parent_id, seq)
    SELECT session, parent_id, seq FROM store_records WHERE record > ? AND record <= ? AND parent_id IS NOT NULL`,
  childrenIn:
    "SELECT session, parent_id AS parentId, seq FROM store_records WHERE record > ? AND record <= ? AND parent_id IS NOT NULL",
  takeOutChild: "DELETE FROM store_children WHERE session = ? AND parent_id = ? AND seq = ?",
  setChildrenEntered: "UPDATE store_children_state SET entered_to = ? WHERE one = 1",
  clearChildren: "DELETE FROM store_children",
  newestRecord: "SELECT max(record) FROM store_records",
  sharersOf: `WITH RECURSIVE sharer (session) AS (
      SELECT ?
      UNION
      SELECT s.session FROM sharer JOIN store_sessions s ON s.origin = sharer.session AND s.origin_seq >= ?
    ) SELECT s.* FROM sharer JOIN store_sessions s ON s.session = sharer.session`,
  countMessages: "SELECT count(*) FROM store_records WHERE session = ? AND seq > ? AND seq <= ? AND type = 'message'",
  lastMainRecord:
    "SELECT id FROM store_records WHERE session = ? AND seq > ? AND seq <= ? AND side = 0 ORDER BY seq DESC LIMIT 1",
  catchUpIds:
    "INSERT OR IGNORE INTO store_record_ids (session, id, seq) SELECT session, id, seq FROM store_records WHERE session = ? AND seq > ? AND seq <= ?",
  insertId: "INSERT OR IGNORE INTO store_record_ids (session, id, seq) VALUES (?, ?, ?)",
  findId: "SELECT seq FROM store_record_ids WHERE session = ? AND id = ?",
  findKeyed:
    "SELECT digest, number, at_ms, from_seq, record_count, result FROM store_keyed_appends WHERE session = ? AND idempotency_key = ?",
  insertKeyed:
    "INSERT OR REPLACE INTO store_keyed_appends (session, idempotency_key, digest, number, at_ms, from_seq, record_count, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  renewKeyed: "UPDATE store_keyed_appends SET number = number WHERE session = ? AND idempotency_key = ?",
  oldKeyed: "SELECT idempotency_key, at_ms FROM store_keyed_appends WHERE session = ? AND number < ? AND at_ms < ?",
  deleteKeyed: "DELETE FROM store_keyed_appends WHERE session = ? AND idempotency_key = ?",
  writePartial: `INSERT INTO store_partials (session, fence, turn_id, partial) VALUES (?, ?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, turn_id = excluded.turn_id, partial = excluded.partial`,
  findPartial: "SELECT fence, turn_id AS turnId, partial FROM store_partials WHERE session = ?",
  deletePartial: "DELETE FROM store_partials WHERE session = ? AND fence <= ?",
};

const lists: ReadonlySet<string> = new Set(["logState", "writeBack", "beginLogAnew"]);
/** Each row of these statements is compared with its checksum. */
const sessions: ReadonlySet<string> = new Set(["findCurrent", "findArchived", "findSession", "forksOf", "sharersOf"]);
const scalars: ReadonlySet<string> = new Set([
  "dataVersion",
  "findPayload",
  "countMessages",
  "childrenEntered",
  "endOfSlice",
  "newestRecord",
  "countBySource",
  "countByDigest",
]);

/** Prepares each statement once for a connection, at its first use, because a reader needs few of them. */
export function prepareStatements(database: Database.Database): Statements {
  const ranges = (columns: string, isRaw = false): Record<"ascending" | "descending", Statement<RecordRange>> => {
    const sql = `SELECT ${columns} FROM store_records WHERE session = ? AND seq > ? AND seq < ? ORDER BY seq`;
    const prepare = (order: string): Statement<RecordRange> => {
      const statement = database.prepare<RecordRange>(`${sql} ${order} LIMIT ?`);
      return isRaw ? statement.raw() : statement;
    };
    return lazily({ ascending: () => prepare("ASC"), descending: () => prepare("DESC") });
  };
  const single = Object.entries(texts).map(([name, sql]) => {
    const prepare = (): Pick<Statement<unknown[]>, "get" | "all" | "source"> => {
      const statement = database.prepare<unknown[]>(sql);
      if (lists.has(name)) return statement.raw();
      if (sessions.has(name)) return checked(statement);
      return scalars.has(name) ? statement.pluck() : statement;
    };
    return [name, prepare];
  });
  return Object.assign(lazily(Object.fromEntries(single) as Readonly<Record<string, () => unknown>>), {
    readHeads: ranges(selected(readColumns)),
    readRecords: ranges(selected([...readColumns, ...contentColumns])),
    readTexts: ranges(textColumns, true),
    // A database does not know the types of parameters and rows, so `Statements` declares them.
  }) as unknown as Statements;
}

function checked(statement: Statement<unknown[]>): Pick<Statement<unknown[]>, "get" | "all" | "source"> {
  const check = (row: unknown): SessionRow => checkedSession(row as SessionRow);
  return {
    source: statement.source,
    get: (...values: unknown[]) => {
      const row = statement.get(...values);
      return row === undefined ? undefined : check(row);
    },
    all: (...values: unknown[]) => statement.all(...values).map(check),
  };
}
