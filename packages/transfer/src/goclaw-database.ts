import { createHash } from "node:crypto";
import { createFinding, type Finding } from "@throughline/core";
import { databaseSource, definedFields, readJsonObject } from "./database-session.ts";
import { guarded, type FoundSource } from "./found-source.ts";
import { checkpointRecord, compactionRecord, createMessageRows, isoTime, timeMs } from "./goclaw-rows.ts";
import type { DatabaseLine } from "./line-source.ts";
import type { DatabaseRow, ForeignDatabase } from "./node/foreign-database.ts";

export function isGoclawDatabase(database: ForeignDatabase): boolean {
  const messages = database.columns("messages");
  if (!messages.has("session_key") || !messages.has("timestamp")) return false;
  return (messages.has("role") && messages.has("content")) || (messages.has("type") && messages.has("data"));
}

/**
 * The sessions of GoClaw's database, in any of the three shapes it has had: rows with columns as it ships and as its
 * first document shows, or records as JSON as its second does. Its sessions table may well be empty: whatever key a
 * message has is a session.
 */
export async function* goclawDatabase(database: ForeignDatabase): AsyncGenerator<FoundSource> {
  for (const key of keysOf(database)) {
    const state = sessionRow(database, key);
    const sessionId = textOf(state?.["id"]) ?? `goclaw-${hash(key)}`;
    const source = databaseSource({
      databasePath: database.path,
      format: "goclaw",
      agentId: null,
      key,
      sessionId,
      entry: { sessionId, ...entryOf(state) },
      lines: () => linesOf(database, key, sessionId),
      isArchived: false,
      archivedAtMs: null,
      findings: state === null ? [unindexed(database.path, key)] : [],
    });
    yield* guarded(source.path, one(source));
  }
}

async function* one(source: FoundSource): AsyncGenerator<FoundSource> {
  yield source;
}

function keysOf(database: ForeignDatabase): readonly string[] {
  const tables = ["messages", "checkpoints", "compactions"].filter((table) =>
    database.columns(table).has("session_key"),
  );
  const selects = tables.map((table) => `SELECT session_key AS key FROM ${table}`);
  if (database.columns("sessions").has("key")) selects.push("SELECT key FROM sessions");
  const rows = database.all(`${selects.join(" UNION ")} ORDER BY 1`);
  return rows.flatMap(({ key }) => (typeof key === "string" && key !== "" ? [key] : []));
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

/** Messages in the order they were inserted; checkpoints and compactions where their time puts them. */
function* linesOf(database: ForeignDatabase, key: string, sessionId: string): Generator<DatabaseLine> {
  const created = sessionRow(database, key)?.["created_at"];
  const [first] = database.all("SELECT min(timestamp) AS first FROM messages WHERE session_key = ?", key);
  const startedAt = isoTime(timeMs(created) ?? timeMs(first?.["first"]));
  yield JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp: startedAt, key });
  const others = otherRecords(database, key);
  const hasColumns = database.columns("messages").has("role");
  const rows = createMessageRows();
  const chain = new Chain();
  for (const row of database.iterate("SELECT * FROM messages WHERE session_key = ? ORDER BY rowid", key)) {
    const atMs = timeMs(row["timestamp"]) ?? 0;
    // Times are whole seconds: what has the same second as a message was written after it.
    while (others[0] !== undefined && others[0].atMs < atMs) yield* chain.lines(others.shift()?.record);
    const record = hasColumns ? rows.record(row) : documentedRecord(row);
    if (record === null) yield unreadableLine(row);
    else yield* chain.lines(record);
  }
  for (const { record } of others) yield* chain.lines(record);
}

/** GoClaw's sessions are one line of records; most rows do not say what came before them. */
class Chain {
  #headId: string | null = null;

  *lines(record: Readonly<Record<string, unknown>> | undefined): Generator<DatabaseLine> {
    if (record === undefined) return;
    const { type, id, parentId = this.#headId, ...fields } = record;
    yield JSON.stringify({ type, id, parentId, ...fields });
    if (type !== "checkpoint" && typeof id === "string") this.#headId = id;
  }
}

function otherRecords(
  database: ForeignDatabase,
  key: string,
): { readonly atMs: number; readonly record: Readonly<Record<string, unknown>> }[] {
  const read = (table: string, record: (row: DatabaseRow) => Readonly<Record<string, unknown>>) =>
    database.columns(table).has("session_key")
      ? database
          .all(`SELECT * FROM ${table} WHERE session_key = ? ORDER BY rowid`, key)
          .map((row) => ({ atMs: timeMs(row["timestamp"]) ?? 0, record: record(row) }))
      : [];
  const all = [...read("checkpoints", checkpointRecord), ...read("compactions", compactionRecord)];
  return all.toSorted((a, b) => a.atMs - b.atMs);
}

/** A row as the second document has it: the record is in `data`, what names it in columns. Null: it is no JSON object. */
function documentedRecord(row: DatabaseRow): Readonly<Record<string, unknown>> | null {
  const data = readJsonObject(row["data"]);
  if (data === null) return null;
  const { type, id, parent_id: parentId } = row;
  const timestamp = typeof data["timestamp"] === "string" ? data["timestamp"] : isoTime(timeMs(row["timestamp"]));
  return { ...data, type, id, ...(typeof parentId === "string" ? { parentId } : {}), timestamp };
}

function unreadableLine(row: DatabaseRow): DatabaseLine {
  return typeof row["data"] === "string" ? row["data"].replaceAll(/\r?\n/g, " ") : "";
}

function unindexed(path: string, key: string): Finding {
  return createFinding("SESSION_UNINDEXED", "The sessions table has no row for this key.", { path, key });
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
