import { createHash } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { DatabaseSync } from "node:sqlite";

/** The tables of an agent's database of OpenClaw 2026.9 that hold sessions, cut down to what an import looks at. */
const openclawTables = `
  PRAGMA user_version = 23;
  CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER NOT NULL, agent_id TEXT) STRICT;
  CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL,
    label TEXT, display_name TEXT, spawned_by TEXT, archived_at INTEGER) STRICT;
  CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT,
    reason TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER, chat_type TEXT,
    channel TEXT, account_id TEXT, model_provider TEXT, model TEXT) STRICT;
  CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, event_zstd BLOB,
    event_utf8_bytes INTEGER, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq)) STRICT;
  CREATE TABLE session_transcript_archives (session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT NOT NULL,
    reason TEXT NOT NULL, encoding TEXT NOT NULL, archive_blob BLOB NOT NULL, archive_sha256 TEXT NOT NULL,
    created_at INTEGER NOT NULL, PRIMARY KEY (session_id, generation)) STRICT;
  CREATE TABLE session_transcript_cold_archives (session_id TEXT PRIMARY KEY, archive_name TEXT, raw_bytes INTEGER,
    last_seq INTEGER, archive_blob BLOB, archive_sha256 TEXT) STRICT;
  INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'ops');`;

export interface OpenclawFixture extends Disposable {
  readonly database: DatabaseSync;
  node(key: string, sessionId: string, entry: unknown): void;
  window(sessionId: string, key: string, createdAtMs: number, reason?: string): void;
  /** Lines with an odd index are packed. */
  events(sessionId: string, lines: readonly string[], fromSeq?: number): void;
}

export function openclawFixture(path: string): OpenclawFixture {
  const database = new DatabaseSync(path);
  database.exec(openclawTables);
  return {
    database,
    node(key, sessionId, entry): void {
      const text = typeof entry === "string" ? entry : JSON.stringify(entry);
      database
        .prepare("INSERT INTO session_nodes (session_key, current_session_id, entry_json) VALUES (?, ?, ?)")
        .run(key, sessionId, text);
    },
    window(sessionId, key, createdAtMs, reason): void {
      const sql =
        "INSERT INTO session_windows (session_id, session_key, reason, created_at, updated_at, channel) VALUES (?, ?, ?, ?, ?, 'discord')";
      database.prepare(sql).run(sessionId, key, reason ?? null, createdAtMs, createdAtMs + 5);
    },
    events(sessionId, lines, fromSeq = 0): void {
      const insert = database.prepare("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, 0)");
      for (const [index, line] of lines.entries()) {
        const packed = index % 2 === 1;
        insert.run(
          sessionId,
          fromSeq + index,
          packed ? null : line,
          packed ? zstdCompressSync(line) : null,
          Buffer.byteLength(line),
        );
      }
    },
    [Symbol.dispose](): void {
      if (database.isOpen) database.close();
    },
  };
}

export function transcriptArchive(
  lines: readonly string[],
  isPacked: boolean,
): { readonly blob: Uint8Array; readonly sha256: string } {
  const text = Buffer.from(`${lines.join("\n")}\n`);
  const blob = isPacked ? zstdCompressSync(text) : text;
  return { blob, sha256: createHash("sha256").update(blob).digest("hex") };
}

/** Lines of a version 3 transcript: header, a question, an answer, and so on. */
export function talk(sessionId: string, texts: readonly string[]): readonly string[] {
  const time = (index: number): string => new Date(1_790_000_000_000 + index * 1000).toISOString();
  const header = JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp: time(0), cwd: "/" });
  const lines = texts.map((text, index) => {
    const role = index % 2 === 0 ? "user" : "assistant";
    const message = { role, content: [{ type: "text", text }] };
    const parentId = index === 0 ? null : `${sessionId}-${index - 1}`;
    return JSON.stringify({
      type: "message",
      id: `${sessionId}-${index}`,
      parentId,
      timestamp: time(index + 1),
      message,
    });
  });
  return [header, ...lines];
}
