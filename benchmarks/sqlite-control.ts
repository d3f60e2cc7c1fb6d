// The bare database the SQLite store is measured against: its own rows in its own schema, and nothing around them.
import { createRequire } from "node:module";
import { crc32 } from "node:zlib";
import { systemClock, systemRecordIds } from "../packages/core/src/node/system-ports.ts";
import { type AppendTarget, planAppend, prepareAppend } from "../packages/store-kit/src/plan-append.ts";
import { lineBytes } from "../packages/core/src/prepare-drafts.ts";
import { sqliteCapabilities } from "../packages/store-sqlite/src/sqlite-store.ts";
import { createSchemaText } from "../packages/store-sqlite/src/schema.ts";

export interface RawStatement {
  run(...values: unknown[]): unknown;
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  pluck(): RawStatement;
  raw(): RawStatement;
}

export interface RawDatabase {
  pragma(text: string): unknown;
  exec(sql: string): unknown;
  prepare(sql: string): RawStatement;
  close(): void;
}

const require = createRequire(new URL("../packages/store-sqlite/package.json", import.meta.url));
const Database = require("better-sqlite3") as new (path: string) => RawDatabase;

const planning = {
  capabilities: sqliteCapabilities({ hasSearch: true }),
  ids: systemRecordIds,
  clock: systemClock,
};

/** A turn: a question, a call of a tool, its result, the answer. About 3 KB. */
export const messages: readonly {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: string;
}[] = [
  { role: "user", content: "q".repeat(200) },
  { role: "assistant", content: "c".repeat(300) },
  { role: "toolResult", toolCallId: "call_1", toolName: "read", content: "r".repeat(1700) },
  { role: "assistant", content: "a".repeat(500) },
];

export interface Control {
  turn(): void;
  /** One turn of each of 64 sessions in one commit: what a commit can be shared for at best. */
  turnOfEach(): void;
  /** The same turn after one turn of the event loop. */
  turnLater(): Promise<void>;
  /** That turn with the drafts checked, linked and answered as the contract of every store asks, by the same functions. */
  turnPlanned(): Promise<void>;
  close(): void;
}

export interface ControlOptions {
  /** @default "FULL" */
  readonly synchronous?: "FULL" | "NORMAL";
  /** Ids and times as every record of the store has its own, instead of counted ones. @default false */
  readonly isFresh?: boolean;
  /** What the store sets beside the log and its flush. @default false */
  readonly hasPragmas?: boolean;
  /** The number that tells whether anybody else has written, asked under the lock. @default false */
  readonly asksVersion?: boolean;
}

export function openRaw(path: string, synchronous: "FULL" | "NORMAL" = "FULL"): RawDatabase {
  const database = new Database(path);
  for (const setting of ["page_size = 8192", "journal_mode = WAL", `synchronous = ${synchronous}`])
    database.pragma(setting);
  return database;
}

function idOf(seq: number): string {
  return `${1_700_000_000_000 + seq}_00000000`;
}

export function lineOf(seq: number, message: object): string {
  const [id, parentId] = [idOf(seq), seq === 1 ? null : idOf(seq - 1)];
  return JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-02T03:04:05.006Z", message });
}

type RecordValues = readonly [
  session: number,
  seq: number,
  id: string,
  parentId: string | null,
  tsMs: number,
  storedAtMs: number,
  bytes: number,
  crc: number,
  role: string,
  text: string,
];

/** The rows of a turn with everything counted: the least a record of its own can be. */
function countedRows(session: number, seq: number): RecordValues[] {
  return messages.map((message, index) => {
    const at = seq + index + 1;
    const text = lineOf(at, message);
    const nowMs = 1_700_000_000_000 + at;
    const parentId = at === 1 ? null : idOf(at - 1);
    return [session, at, idOf(at), parentId, nowMs, nowMs, Buffer.byteLength(text), crc32(text), message.role, text];
  });
}

/** The same with ids and times of their own. */
function freshRows(session: number, seq: number, headId: string | null): RecordValues[] {
  let parentId = headId;
  return messages.map((message, index) => {
    const nowMs = Date.now();
    const [id, timestamp] = [systemRecordIds.next(), new Date(nowMs).toISOString()];
    const text = JSON.stringify({ type: "message", id, parentId, timestamp, message });
    const head = [session, seq + index + 1, id, parentId, nowMs, nowMs] as const;
    parentId = id;
    return [...head, Buffer.byteLength(text), crc32(text), message.role, text];
  });
}

/**
 * The rows a turn of the store writes, in its own schema with its own indexes: four records with their columns and
 * checksums, and the session's row. No rule, no queue, no promise: what SQLite and the driver take for them.
 */
export function createControl(path: string, options: ControlOptions = {}): Control {
  const { synchronous = "FULL", isFresh = false, hasPragmas = false, asksVersion = false } = options;
  const database = openRaw(path, synchronous);
  if (hasPragmas)
    for (const name of ["foreign_keys", "cell_size_check", "secure_delete"]) database.pragma(`${name} = ON`);
  database.exec(createSchemaText);
  const begun = database.prepare(
    `INSERT INTO store_sessions (namespace, agent_id, key, archived, session_id, revision, last_seq, fence, message_count, created_at_ms,
       updated_at_ms, updated_slot, ids_to_seq, keyed_next, keyed_rows, keyed_sweep_at, keyed_horizon_ms)
     VALUES ('', 'main', ?, 0, ?, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5120, -1)`,
  );
  for (let session = 1; session <= 64; session++) begun.run(`agent:main:raw-${session}`, `raw-${session}`);
  const [begin, commit] = [database.prepare("BEGIN IMMEDIATE"), database.prepare("COMMIT")];
  const insert = database.prepare(
    `INSERT INTO store_records (session, seq, id, parent_id, type, side, ts_ms, stored_at_ms, bytes, crc, role, tool_name, text)
     VALUES (?, ?, ?, ?, 'message', 0, ?, ?, ?, ?, ?, NULL, ?)`,
  );
  const update = database.prepare(
    "UPDATE store_sessions SET last_seq = ?, head_id = ?, message_count = ?, updated_at_ms = ? WHERE session = ?",
  );
  const version = database.prepare("PRAGMA data_version").pluck();
  const heads: { seq: number; id: string | null }[] = Array.from({ length: 65 }, () => ({ seq: 0, id: null }));
  const rowsOf = (session: number): RecordValues[] => {
    const { seq, id } = heads[session] ?? { seq: 0, id: null };
    return isFresh ? freshRows(session, seq, id) : countedRows(session, seq);
  };
  const write = (rows: readonly RecordValues[]): void => {
    for (const row of rows) insert.run(...row);
    const [session, seq, id, , tsMs] = rows.at(-1) as RecordValues;
    update.run(seq, id, seq, tsMs, session);
    heads[session] = { seq, id };
  };
  const turnWith = (rows: readonly RecordValues[]): void => {
    begin.run();
    if (asksVersion) version.get();
    write(rows);
    commit.run();
  };
  return {
    turn: () => turnWith(rowsOf(1)),
    async turnLater() {
      const rows = rowsOf(1);
      await new Promise((resolve) => setImmediate(resolve));
      turnWith(rows);
    },
    async turnPlanned() {
      const request = prepareAppend(
        messages.map((message) => ({ type: "message", message })),
        {},
        planning,
      );
      await new Promise((resolve) => setImmediate(resolve));
      begin.run();
      version.get();
      const { seq, id } = heads[1] ?? { seq: 0, id: null };
      const plan = planAppend(request, targetAt(seq, id), Date.now());
      write(
        plan.linked.map((item, index): RecordValues => {
          const { id: recordId, parentId } = item.record;
          const tsMs = item.tsMs ?? 0;
          const [bytes, role] = [lineBytes(item), messages[index]?.role ?? ""];
          return [1, seq + index + 1, recordId, parentId, tsMs, tsMs, bytes, crc32(item.text), role, item.text];
        }),
      );
      commit.run();
    },
    turnOfEach() {
      begin.run();
      for (let session = 1; session <= 64; session++) write(rowsOf(session));
      commit.run();
    },
    close: () => database.close(),
  };
}

/** A session as a plan of an append asks for it, without anything to look up. */
function targetAt(lastSeq: number, headId: string | null): AppendTarget {
  const ref = { namespace: "", agentId: "main", key: "agent:main:raw-1" };
  const head = { sessionId: "raw-1", lastSeq, headId, windowSeq: null, fence: 0, turn: null };
  return {
    frame: { ref, sessionId: "raw-1", revision: 1, head, createdAtMs: 0, updatedAtMs: 0 },
    entry: () => ({ sessionId: "raw-1" }),
    holdsId: () => false,
    findKeyed: () => null,
  };
}
