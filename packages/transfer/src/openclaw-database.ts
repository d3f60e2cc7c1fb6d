import { createHash } from "node:crypto";
import { zstdDecompressSync } from "node:zlib";
import { createFinding, isAgentId, quote } from "@throughline/core/internal";
import { type Finding, ThroughlineError } from "@throughline/core";
import { databaseSource, definedFields, readJsonObject } from "./database-session.ts";
import type { FoundSource } from "./found-source.ts";
import type { DatabaseLine } from "./line-source.ts";
import type { DatabaseRow, ForeignDatabase } from "./node/foreign-database.ts";

/** This reader was written for this schema version; it needs the columns below. */
const knownSchema = 23;
const needed: Readonly<Record<string, readonly string[]>> = {
  session_nodes: ["session_key", "current_session_id", "entry_json"],
  session_windows: ["session_id", "session_key", "created_at", "updated_at"],
  transcript_events: ["session_id", "seq", "event_json"],
};

/** An archive of one session never exceeds this size; OpenClaw limits an event to 4 MiB. */
const maxArchiveBytes = 512 * 1024 * 1024;
const maxEventBytes = 4 * 1024 * 1024;

export function isOpenclawDatabase(database: ForeignDatabase): boolean {
  return Object.keys(needed).every((table) => database.columns(table).size > 0);
}

/**
 * Yields the sessions of one agent of OpenClaw since 2026.8. Each window of a key is a session: the current window has
 * the key, and earlier windows are its archives. Transcripts that OpenClaw archived are archives too. The log's rows
 * are the lines that OpenClaw's files held before, some of them compressed.
 * @throws {ThroughlineError} STORE_VERSION_UNSUPPORTED
 */
export async function* openclawDatabase(
  database: ForeignDatabase,
  pathAgent: string | null,
): AsyncGenerator<FoundSource> {
  assertSchema(database);
  const agentId = agentOf(database) ?? pathAgent;
  const place = { databasePath: database.path, format: "openclaw-sqlite", agentId } as const;
  // Archives come first: an archived session releases its key to its successor.
  for (const archive of transcriptArchives(database)) {
    const row = firstOf(database, "SELECT * FROM session_transcript_archives WHERE session_id = ? AND generation = ?", [
      String(archive["session_id"]),
      String(archive["generation"]),
    ]);
    if (row === null) continue;
    const sessionId = String(row["session_id"]);
    const path = `${database.path}#${sessionId}`;
    yield databaseSource({
      ...place,
      key: textOf(row["session_key"]),
      sessionId,
      part: String(row["generation"]),
      entry: { sessionId, updatedAt: row["created_at"], archiveReason: row["reason"] },
      lines: () => [archiveText(row, path)],
      isArchived: true,
      isCopy: archive["has_window"] === 1,
      archivedAtMs: numberOf(row["created_at"]),
      findings: [],
    });
  }
  const rowOf = windowReader(database);
  for (const window of windowKeys(database)) {
    const row = rowOf(window);
    if (row === null) continue;
    const sessionId = String(row["session_id"]);
    const { entry, finding } = entryOf(row, database.path);
    const isCurrent = row["is_current"] === 1;
    const archivedAtMs = isCurrent
      ? numberOf(row["archived_at"])
      : (numberOf(row["ended_at"]) ?? numberOf(row["updated_at"]));
    yield databaseSource({
      ...place,
      key: textOf(row["session_key"]),
      sessionId,
      entry,
      lines: row["has_window"] === 1 ? () => windowLines(database, sessionId) : null,
      isArchived: !isCurrent || archivedAtMs !== null,
      archivedAtMs,
      findings: finding === null ? [] : [finding],
    });
  }
}

/** A newer schema may keep lines in tables that this reader ignores, so it is refused rather than imported in part. */
function assertSchema(database: ForeignDatabase): void {
  const version = Number(database.all("PRAGMA user_version")[0]?.["user_version"] ?? 0);
  const missing = Object.entries(needed).flatMap(([table, names]) => {
    const columns = database.columns(table);
    return names.filter((name) => !columns.has(name)).map((name) => `${table}.${name}`);
  });
  if (missing.length > 0 || version > knownSchema) {
    const why = missing.length > 0 ? `lacks ${missing.join(", ")}` : `has schema ${version}`;
    const message = `The database ${quote(database.path)} ${why}; schema ${knownSchema} is known.`;
    throw new ThroughlineError("STORE_VERSION_UNSUPPORTED", message, {
      outcome: "not-applied",
      details: { path: database.path, version, missing },
      remedy: "Export the sessions with OpenClaw itself, or upgrade Throughline; the database was not changed.",
    });
  }
}

function agentOf(database: ForeignDatabase): string | null {
  if (!database.columns("schema_meta").has("agent_id")) return null;
  const row = database.all("SELECT agent_id FROM schema_meta WHERE role = 'agent' AND agent_id IS NOT NULL LIMIT 1")[0];
  const agentId = row?.["agent_id"];
  return typeof agentId === "string" && isAgentId(agentId) ? agentId : null;
}

/**
 * Lists the sessions in order: ended sessions first, older before newer.
 * It selects ids alone, because entries have tens of kilobytes and SQLite sorts a result in memory.
 */
function windowKeys(database: ForeignDatabase): Iterable<DatabaseRow> {
  return database.iterate(`
    SELECT w.session_id, n.session_key, w.created_at, 1 AS has_window,
      coalesce(w.session_id = n.current_session_id, 0) AS is_current
    FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key
    UNION ALL
    SELECT n.current_session_id, n.session_key, 0, 0, 1
    FROM session_nodes n
    WHERE NOT EXISTS (SELECT 1 FROM session_windows w WHERE w.session_id = n.current_session_id)
    ORDER BY 5, 3, 1`);
}

/** Returns null when the session has been deleted meanwhile. */
function windowReader(database: ForeignDatabase): (window: DatabaseRow) => DatabaseRow | null {
  const has = database.columns("session_windows");
  const node = database.columns("session_nodes");
  const optional = (columns: ReadonlySet<string>, prefix: string, names: readonly string[]): string =>
    names.map((name) => `, ${columns.has(name) ? `${prefix}.${name}` : "NULL"} AS ${name}`).join("");
  const fields =
    optional(has, "w", ["previous_session_id", "reason", "ended_at", "chat_type", "channel", "account_id"]) +
    optional(has, "w", ["model_provider", "model"]) +
    optional(node, "n", ["archived_at", "label", "display_name", "spawned_by"]);
  // The entry belongs to the current session; earlier windows of the key have the same row.
  const withWindow = `
    SELECT w.session_id, w.session_key, w.created_at, w.updated_at, 1 AS has_window,
      coalesce(w.session_id = n.current_session_id, 0) AS is_current,
      CASE WHEN w.session_id = n.current_session_id THEN n.entry_json END AS entry_json${fields}
    FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key WHERE w.session_id = ?`;
  const withoutWindow = `
    SELECT n.current_session_id AS session_id, n.session_key, 0 AS created_at, 0 AS updated_at, 0 AS has_window,
      1 AS is_current, n.entry_json${fields.replaceAll(/\bw\.\w+ AS/g, "NULL AS")}
    FROM session_nodes n WHERE n.session_key = ?`;
  return (window) =>
    window["has_window"] === 1
      ? firstOf(database, withWindow, [String(window["session_id"])])
      : firstOf(database, withoutWindow, [String(window["session_key"])]);
}

function firstOf(database: ForeignDatabase, sql: string, values: readonly string[]): DatabaseRow | null {
  return database.all(sql, ...values)[0] ?? null;
}

function entryOf(
  row: DatabaseRow,
  databasePath: string,
): { readonly entry: Readonly<Record<string, unknown>>; readonly finding: Finding | null } {
  const sessionId = String(row["session_id"]);
  const columns = definedFields({
    chatType: row["chat_type"],
    channel: row["channel"],
    lastAccountId: row["account_id"],
    modelProvider: row["model_provider"],
    model: row["model"],
    previousSessionId: row["previous_session_id"],
  });
  if (row["is_current"] !== 1) {
    const windowReason = definedFields({ windowReason: row["reason"] });
    return { entry: { sessionId, updatedAt: row["updated_at"], ...columns, ...windowReason }, finding: null };
  }
  const own = definedFields({ label: row["label"], displayName: row["display_name"], spawnedBy: row["spawned_by"] });
  const stated = readJsonObject(row["entry_json"]);
  if (stated !== null) {
    // OpenClaw treats the entry as the truth; its columns are copies that are never newer.
    return { entry: { ...own, ...stated, sessionId }, finding: null };
  }
  const where = { path: `${databasePath}#${sessionId}`, key: textOf(row["session_key"]) };
  const finding = createFinding("ENTRY_UNREADABLE", "The session's entry is no JSON object.", where);
  return { entry: { sessionId, updatedAt: row["updated_at"], ...columns, ...own }, finding };
}

function* windowLines(database: ForeignDatabase, sessionId: string): Generator<DatabaseLine> {
  const afterSeq = yield* coldLines(database, sessionId);
  const has = database.columns("transcript_events");
  const packed = has.has("event_zstd") ? "event_zstd" : "NULL AS event_zstd";
  const sql = `SELECT seq, event_json, ${packed} FROM transcript_events WHERE session_id = ? AND seq > ? ORDER BY seq`;
  for (const row of database.iterate(sql, sessionId, afterSeq)) yield eventLine(row);
}

/** Yields lines of old windows that OpenClaw packed into one block. Returns the seq of the last one. */
function* coldLines(database: ForeignDatabase, sessionId: string): Generator<DatabaseLine, number> {
  if (!database.columns("session_transcript_cold_archives").has("archive_blob")) return -1;
  const [row] = database.all("SELECT * FROM session_transcript_cold_archives WHERE session_id = ?", sessionId);
  if (row === undefined) return -1;
  const path = `${database.path}#${sessionId}`;
  if (!(row["archive_blob"] instanceof Uint8Array)) {
    const message = `The lines of ${quote(path)} lie in an archive of their own, ${quote(row["archive_name"])}.`;
    throw new ThroughlineError("FILE_UNREADABLE", message, {
      details: { path, archiveName: row["archive_name"] },
      remedy: "Let OpenClaw restore the session from its cold storage, then import it again.",
    });
  }
  yield archiveText({ ...row, encoding: "zstd" }, path);
  return numberOf(row["last_seq"]) ?? -1;
}

function eventLine(row: DatabaseRow): DatabaseLine {
  const { event_json: text, event_zstd: packed } = row;
  // JSON allows a line feed only between tokens, where a space is equivalent.
  if (typeof text === "string") return text.includes("\n") ? text.replaceAll(/\r?\n/g, " ") : text;
  if (!(packed instanceof Uint8Array)) return "";
  try {
    const bytes = zstdDecompressSync(packed, { maxOutputLength: maxEventBytes });
    return bytes.includes(0x0a) ? bytes.toString("utf8").replaceAll(/\r?\n/g, " ") : bytes;
  } catch {
    // One bad row must not block the others, so its bytes are kept as an unparsed line.
    return `row ${String(row["seq"])} cannot be unpacked: ${Buffer.from(packed).toString("base64")}`;
  }
}

/** Lists the archives without their content, which may be large. */
function transcriptArchives(database: ForeignDatabase): Iterable<DatabaseRow> {
  if (!database.columns("session_transcript_archives").has("archive_blob")) return [];
  return database.iterate(`
    SELECT a.session_id, a.generation, EXISTS (SELECT 1 FROM session_windows w WHERE w.session_id = a.session_id)
      AS has_window
    FROM session_transcript_archives a ORDER BY a.created_at, a.session_id, a.generation`);
}

/**
 * Returns the lines of an archive as one text, without the last line feed. @throws {ThroughlineError} FILE_UNREADABLE
 */
function archiveText(row: DatabaseRow, path: string): Uint8Array {
  const { archive_blob: blob, encoding, archive_sha256: stated } = row;
  if (!(blob instanceof Uint8Array)) throw unreadableArchive(path, "it is empty", null);
  let bytes: Uint8Array;
  try {
    bytes = encoding === "zstd" ? zstdDecompressSync(blob, { maxOutputLength: maxArchiveBytes }) : blob;
  } catch (cause) {
    throw unreadableArchive(path, "it cannot be unpacked", cause);
  }
  if (![blob, bytes].some((content) => createHash("sha256").update(content).digest("hex") === stated)) {
    throw unreadableArchive(path, "its checksum is another", null);
  }
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes;
}

function unreadableArchive(path: string, why: string, cause: unknown): ThroughlineError {
  return new ThroughlineError("FILE_UNREADABLE", `The archive of ${quote(path)} cannot be read: ${why}.`, {
    details: { path },
    ...(cause === null ? {} : { cause }),
    remedy: "The other sessions were imported; restore this one from a backup of the database.",
  });
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
