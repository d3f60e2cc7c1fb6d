import { createHash } from "node:crypto";
import { createFinding, systemClock } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { databaseSource, definedFields, readJsonObject } from "./database-session.ts";
import type { FoundSource } from "./found-source.ts";
import { findOddities } from "./goclaw-oddities.ts";
import { checkpointRecord, compactionRecord, createMessageRows, isoTime, rowId, timeMs } from "./goclaw-rows.ts";
import type { DatabaseLine } from "./line-source.ts";
import type { DatabaseRow, ForeignDatabase } from "./node/foreign-database.ts";

export function isGoclawDatabase(database: ForeignDatabase): boolean {
  const messages = database.columns("messages");
  if (!messages.has("session_key") || !messages.has("timestamp")) return false;
  return (messages.has("role") && messages.has("content")) || (messages.has("type") && messages.has("data"));
}

/**
 * Yields the sessions of GoClaw's database in any of its three shapes. Two have rows with columns: the shipped schema
 * and the first document. The second document stores records as JSON.
 * The sessions table may be empty, so every key of a message is a session, and rows without a key form one more.
 */
export async function* goclawDatabase(database: ForeignDatabase): AsyncGenerator<FoundSource> {
  const oddities = findOddities(database);
  // A row of the current second may still be followed by a row that sorts before it, so recent rows wait.
  const settledMs = systemClock.nowMs() - 1000;
  for (const key of keysOf(database)) {
    const state = key === null ? null : sessionRow(database, key);
    // A session row may appear after its messages, so neither the location nor the lines depend on it.
    const ownId = `goclaw-${hash(key ?? "")}`;
    const sessionId = textOf(state?.["id"]) ?? ownId;
    yield databaseSource({
      databasePath: database.path,
      format: "goclaw",
      key,
      sessionId,
      place: ownId,
      entry: { sessionId, ...entryOf(state) },
      lines: () => linesOf({ database, rows: rowsOf(key), ownId, settledMs }),
      findings: [...(state === null ? [unindexed(database.path, key)] : []), ...(oddities.get(key ?? "") ?? [])],
    });
  }
}

interface SessionRows {
  readonly where: string;
  readonly values: readonly string[];
}

const unkeyed = "(session_key IS NULL OR typeof(session_key) <> 'text' OR session_key = '')";

function rowsOf(key: string | null): SessionRows {
  return key === null ? { where: unkeyed, values: [] } : { where: "session_key = ?", values: [key] };
}

/** Returns keys in order, and null at the end for rows without a key. */
function keysOf(database: ForeignDatabase): readonly (string | null)[] {
  const tables = ["messages", "checkpoints", "compactions"].filter((table) =>
    database.columns(table).has("session_key"),
  );
  const selects = tables.map((table) => `SELECT DISTINCT session_key AS key FROM ${table}`);
  if (database.columns("sessions").has("key")) selects.push("SELECT key FROM sessions");
  const keys = database
    .all(`${selects.join(" UNION ")} ORDER BY 1`)
    .flatMap(({ key }) => (typeof key === "string" && key !== "" ? [key] : []));
  const hasUnkeyed = tables.some((table) => database.all(`SELECT 1 FROM ${table} WHERE ${unkeyed} LIMIT 1`).length > 0);
  return hasUnkeyed ? [...keys, null] : keys;
}

function sessionRow(database: ForeignDatabase, key: string): DatabaseRow | null {
  if (!database.columns("sessions").has("key")) return null;
  return database.all("SELECT * FROM sessions WHERE key = ?", key)[0] ?? null;
}

function entryOf(row: DatabaseRow | null): Readonly<Record<string, unknown>> {
  if (row === null) return {};
  const metadata = readJsonObject(row["metadata"]);
  const actioned = row["flush_actioned"];
  return definedFields({
    ...metadata,
    updatedAt: timeMs(row["updated_at"]),
    createdAt: timeMs(row["created_at"]),
    model: row["model"] === "" ? null : row["model"],
    thinkingLevel: row["thinking_level"] === "" ? null : row["thinking_level"],
    contextTokens: row["max_tokens"],
    compactionCount: row["compaction_count"],
    totalTokens: row["total_tokens"],
    flushActioned: actioned === undefined || actioned === null ? null : actioned !== 0,
    goclawFlushedThresholds: row["flushed_thresholds"],
  });
}

interface LinesPlace {
  readonly database: ForeignDatabase;
  readonly rows: SessionRows;
  readonly ownId: string;
  /** Rows that were written before this time keep their position. */
  readonly settledMs: number;
}

/**
 * Keeps messages in insertion order and sorts checkpoints and compactions in by time. Later rows only add lines, so the
 * earlier lines stay the same between imports.
 */
function* linesOf({ database, rows: { where, values }, ownId, settledMs }: LinesPlace): Generator<DatabaseLine> {
  const others = otherRows(database, { where, values });
  const isTimed = "timestamp IS NOT NULL AND timestamp <> ''";
  const sql = `SELECT timestamp FROM messages WHERE ${where} AND ${isTimed} ORDER BY rowid LIMIT 1`;
  const firstMs = timeMs(database.all(sql, ...values)[0]?.["timestamp"]);
  const times = [firstMs, others.find(({ atMs }) => atMs !== null)?.atMs ?? null].filter((time) => time !== null);
  const startMs = times.length === 0 ? 0 : Math.min(...times);
  const chain = new Chain(JSON.stringify({ type: "session", version: 3, id: ownId, timestamp: isoTime(startMs) }));
  const hasColumns = database.columns("messages").has("role");
  const messages = createMessageRows();
  let lastMs = startMs;
  const all = `SELECT rowid AS row_number, * FROM messages WHERE ${where} ORDER BY rowid`;
  for (const row of database.iterate(all, ...values)) {
    const statedMs = timeMs(row["timestamp"]);
    // A row without a time gets the time of the row before it.
    const atMs = statedMs ?? lastMs;
    // Times are whole seconds, so a checkpoint or compaction in the same second counts as later than the message.
    while (others[0] !== undefined && (others[0].atMs ?? startMs) < atMs)
      yield* chain.lines(others.shift()?.record(startMs));
    const record = hasColumns ? messages.record(row, atMs) : documentedRecord(row, atMs);
    if (record === null) yield* chain.line(unreadableLine(row));
    else yield* chain.lines(record);
    lastMs = atMs;
  }
  for (const { atMs, record } of others) if ((atMs ?? 0) < settledMs) yield* chain.lines(record(startMs));
}

/** Links the records to one line, because most of GoClaw's rows do not name the row before them. */
class Chain {
  #headId: string | null = null;
  /** Holds the header until the first line follows, so that an empty session has no lines. */
  #header: string | null;

  constructor(header: string) {
    this.#header = header;
  }

  *line(line: DatabaseLine): Generator<DatabaseLine> {
    if (this.#header !== null) yield this.#header;
    this.#header = null;
    yield line;
  }

  *lines(record: Readonly<Record<string, unknown>> | undefined): Generator<DatabaseLine> {
    if (record === undefined) return;
    const { type, id, parentId = this.#headId, ...fields } = record;
    yield* this.line(JSON.stringify({ type, id, parentId, ...fields }));
    if (type !== "checkpoint" && typeof id === "string") this.#headId = id;
  }
}

interface OtherRow {
  readonly atMs: number | null;
  readonly record: (fallbackMs: number) => Readonly<Record<string, unknown>>;
}

function otherRows(database: ForeignDatabase, { where, values }: SessionRows): OtherRow[] {
  const read = (
    table: string,
    recordOf: (row: DatabaseRow, atMs: number) => Readonly<Record<string, unknown>>,
  ): readonly OtherRow[] => {
    if (!database.columns(table).has("session_key")) return [];
    let lastMs: number | null = null;
    const sql = `SELECT rowid AS row_number, * FROM ${table} WHERE ${where} ORDER BY rowid`;
    return database.all(sql, ...values).map((row) => {
      // A row without a time gets the time of the row before it.
      const atMs = (lastMs = timeMs(row["timestamp"]) ?? lastMs);
      return { atMs, record: (fallbackMs) => recordOf(row, atMs ?? fallbackMs) };
    });
  };
  const all = [...read("checkpoints", checkpointRecord), ...read("compactions", compactionRecord)];
  return all.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0));
}

/**
 * The second document stores the record in `data` and its names in columns. Returns null if `data` is no JSON object.
 */
function documentedRecord(row: DatabaseRow, atMs: number): Readonly<Record<string, unknown>> | null {
  const data = readJsonObject(row["data"]);
  if (data === null) return null;
  const { type, parent_id: parentId } = row;
  const timestamp = typeof data["timestamp"] === "string" ? data["timestamp"] : isoTime(atMs);
  return { ...data, type, id: rowId(row), ...(typeof parentId === "string" ? { parentId } : {}), timestamp };
}

function unreadableLine(row: DatabaseRow): DatabaseLine {
  return typeof row["data"] === "string" ? row["data"].replaceAll(/\r?\n/g, " ") : "";
}

function unindexed(path: string, key: string | null): Finding {
  if (key === null) return createFinding("SESSION_UNINDEXED", "These rows have no session key.", { path });
  return createFinding("SESSION_UNINDEXED", "The sessions table has no row for this key.", { path, key });
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
