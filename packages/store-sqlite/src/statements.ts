import type { KeptPayload } from "@throughline/store-kit/internal";
import type Database from "better-sqlite3";
import { lazily } from "./lazily.ts";
import { purgedNamespace } from "./rows.ts";
import type {
  EntryRow,
  KeyedAppendRow,
  RecordContentRow,
  RecordHeadRow,
  RecordTextRow,
  Session,
  SessionRow,
} from "./rows.ts";
import { checkedSession } from "./row-checksums.ts";

/** Of a checkpoint: whether a lock was in the way, the pages of the log, and those that stand in the database too. */
export type LogRow = readonly [busy: number, pages: number, written: number];

interface PayloadRefs {
  readonly textPayload: number | null;
  readonly sourcePayload: number | null;
}

/** The open reply of a session. */
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
  /** Another number whenever another connection has committed. */
  readonly dataVersion: Statement<[], number>;
  /** The last seqs of sessions, by a JSON array of their numbers. */
  /** Of addresses: namespace, agent, key, and the id of an archived session or null. */
  readonly watchStarts: Statement<
    [addresses: string],
    { readonly place: number; readonly session: Session; readonly lastSeq: number }
  >;
  readonly lastSeqs: Statement<[numbers: string], { readonly session: Session; readonly lastSeq: number }>;
  readonly commit: Statement<[]>;
  /** How long the log is, without changing anything. */
  readonly logState: Statement<[], LogRow>;
  /** Writes the log into the database, as far as nobody needs it; if that was all, the next writer starts it again. */
  readonly writeBack: Statement<[], LogRow>;
  /** The same, and no other process may write meanwhile, so that the log does start again. */
  readonly beginLogAnew: Statement<[], LogRow>;
  readonly rollback: Statement<[]>;
  readonly savepoint: Statement<[]>;
  readonly release: Statement<[]>;
  readonly rollbackToSavepoint: Statement<[]>;
  readonly findCurrent: Statement<Address, SessionRow>;
  readonly findArchived: Statement<[...Address, sessionId: string], SessionRow>;
  /** The same by other indexes: what they find and the first do not, a damaged index hides. */
  readonly hiddenCurrent: Statement<Address>;
  readonly hiddenArchived: Statement<[...Address, sessionId: string]>;
  readonly findSession: Statement<[Session], SessionRow>;
  /** The row as it stands there, damaged or not. */
  readonly rawSession: Statement<[Session], SessionRow>;
  readonly sealSession: Statement<[crc: number, Session]>;
  readonly findIds: Statement<[namespace: string, agentId: string, sessionId: string], Pick<SessionRow, "session_id">>;
  readonly findAgent: Statement<[namespace: string, agentId: string], Pick<SessionRow, "agent_id">>;
  readonly insertSession: Statement<[Omit<SessionRow, "session">]>;
  /** Everything an append changes, in the order of `changingColumns`, then the session. */
  readonly updateSession: Statement<unknown[]>;
  /** What a plain append changes of a session's row. */
  readonly advanceSession: Statement<
    [lastSeq: number, headId: string | null, messageCount: number, updatedAtMs: number, crc: number, Session]
  >;
  readonly countKeyed: Statement<[next: number, rows: number, sweepAt: number, horizonMs: number, Session]>;
  readonly placeSession: Statement<[slot: number, Session]>;
  readonly moveSession: Statement<[key: string, archived: number, Session]>;
  readonly deleteSession: Statement<[Session]>;
  /** Up to a seq. */
  readonly deleteRecords: Statement<[Session, toSeq: number]>;
  readonly addMessages: Statement<[count: number, Session]>;
  readonly findEntry: Statement<[Session], EntryRow>;
  readonly writeEntry: Statement<[Session, KeptPayload, crc: number]>;
  readonly insertRecord: Statement<unknown[]>;
  /** A record whose text stands in the row and is its source: nearly all of them. Every value handed over costs. */
  readonly insertPlainRecord: Statement<unknown[]>;
  readonly replaceRecord: Statement<unknown[]>;
  readonly recodeRecord: Statement<unknown[]>;
  readonly findPayload: Statement<[hash: Uint8Array], number>;
  readonly insertPayload: Statement<[hash: Uint8Array, content: KeptPayload]>;
  readonly readPayload: Statement<[payload: number], { readonly content: KeptPayload }>;
  /** Of a session, from one seq to another. */
  readonly payloadsOf: Statement<[Session, fromSeq: number, toSeq: number], PayloadRefs>;
  /** Deletes a payload nobody refers to. */
  readonly dropPayload: Statement<[payload: number]>;
  readonly forksOf: Statement<[Session], SessionRow>;
  readonly setOrigin: Statement<[origin: Session | null, seq: number | null, Session]>;
  /** `exchanged` stands twice: in SQL the exclusive or of a and b is (a | b) - (a & b). */
  readonly giveRecords: Statement<
    [to: Session, exchanged: number, exchanged: number, from: Session, afterSeq: number, toSeq: number]
  >;
  readonly giveIds: Statement<[to: Session, from: Session, afterSeq: number, toSeq: number]>;
  readonly giveChildren: Statement<[to: Session, from: Session, afterSeq: number, toSeq: number]>;
  /** The number up to which children are entered. */
  readonly childrenEntered: Statement<[], number>;
  /** The number that ends the next slice of records after one; null when there are none. */
  readonly endOfSlice: Statement<[afterRecord: number, rows: number], number | null>;
  readonly enterChildren: Statement<[afterRecord: number, toRecord: number]>;
  readonly childrenIn: Statement<[afterRecord: number, toRecord: number], ChildRow>;
  readonly takeOutChild: Statement<[Session, parentId: string, seq: number]>;
  readonly setChildrenEntered: Statement<[toRecord: number]>;
  readonly clearChildren: Statement<[]>;
  readonly newestRecord: Statement<[], number | null>;
  /** Every session that sees a record. */
  readonly sharersOf: Statement<[Session, seq: number], SessionRow>;
  readonly countMessages: Statement<[Session, afterSeq: number, toSeq: number], number>;
  readonly lastMainRecord: Statement<[Session, afterSeq: number, toSeq: number], { readonly id: string }>;
  readonly readHeads: Record<"ascending" | "descending", Statement<RecordRange, RecordHeadRow>>;
  readonly readRecords: Record<"ascending" | "descending", Statement<RecordRange, RecordContentRow>>;
  /** What of a record its text does not say. Rows are arrays: a page is thousands of them. */
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

/** Of a record, in the order of `insertRecord`; read under the names core gives them. */
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
  "crc",
];

/** What an append changes of a session's row: nothing that stands in an index. */
export const changingColumns: readonly (keyof SessionRow)[] = sessionColumns.slice(
  sessionColumns.indexOf("revision"),
  sessionColumns.indexOf("created_at_ms"),
);

/** The statements that stand by themselves. Session columns are written in the order of the lists above. */
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
  // Named, because with statistics the planner takes the index that holds the archived sessions of the key as well.
  findCurrent:
    "SELECT * FROM store_sessions INDEXED BY store_sessions_current WHERE namespace = ? AND agent_id = ? AND key = ? AND archived = 0",
  findArchived:
    "SELECT * FROM store_sessions WHERE namespace = ? AND agent_id = ? AND key = ? AND session_id = ? AND archived = 1",
  hiddenCurrent:
    "SELECT session FROM store_sessions INDEXED BY store_sessions_key WHERE namespace = ? AND agent_id = ? AND key = ? AND archived = 0",
  hiddenArchived: `SELECT session FROM (SELECT ? AS n, ? AS a, ? AS k, ? AS i) CROSS JOIN store_sessions INDEXED BY store_sessions_id
    ON namespace = n AND agent_id = a COLLATE NOCASE AND session_id = i COLLATE NOCASE
    WHERE agent_id = a AND key = k AND session_id = i AND archived = 1`,
  // What is left of a purged one is no session.
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
  moveSession: "UPDATE store_sessions SET key = ?, archived = ? WHERE session = ?",
  deleteSession: "DELETE FROM store_sessions WHERE session = ?",
  deleteRecords: "DELETE FROM store_records WHERE session = ? AND seq <= ?",
  findEntry: "SELECT entry, crc FROM store_entries WHERE session = ?",
  writeEntry:
    "INSERT INTO store_entries (session, entry, crc) VALUES (?, ?, ?) ON CONFLICT (session) DO UPDATE SET entry = excluded.entry, crc = excluded.crc",
  insertRecord: `INSERT INTO store_records (session, ${[...headColumns, "role", "tool_name", ...contentColumns, "head_crc"].join(", ")}) VALUES (${Array.from({ length: 18 }, () => "?").join(", ")})`,
  insertPlainRecord: `INSERT INTO store_records (session, ${[...headColumns, "role", "tool_name", "text", "head_crc"].join(", ")}) VALUES (${Array.from({ length: 14 }, () => "?").join(", ")})`,
  replaceRecord:
    "UPDATE store_records SET type = ?, bytes = ?, crc = ?, head_crc = ?, role = NULL, tool_name = NULL, text = ?, source_form = NULL, source = NULL, text_payload = NULL, source_payload = NULL WHERE session = ? AND seq = ?",
  recodeRecord:
    "UPDATE store_records SET crc = ?, head_crc = ?, text = ?, source = ?, text_payload = ?, source_payload = ? WHERE session = ? AND seq = ?",
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
/** Each row that these give is compared with its checksum. */
const sessions: ReadonlySet<string> = new Set(["findCurrent", "findArchived", "findSession", "forksOf", "sharersOf"]);
const scalars: ReadonlySet<string> = new Set([
  "dataVersion",
  "findPayload",
  "countMessages",
  "childrenEntered",
  "endOfSlice",
  "newestRecord",
]);

/** Everything an operation needs, each prepared once a connection and when it is first needed: a reader needs few of them. */
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
    // The types say what each text takes and gives; a database knows neither.
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
