import { asText } from "../as-text.ts";
import {
  jsonLine,
  type DatabaseFields,
  type DatabaseSession,
  type FormatDatabase,
  type RowQueries,
} from "../format-database.ts";

/**
 * Goose's database has a row for each session and message. Its columns vary between versions, so the optional ones are
 * checked.
 */
export const gooseDatabase: FormatDatabase = {
  tables: {
    sessions: ["id", "working_dir"],
    messages: ["id", "session_id", "role", "content_json"],
  },
  *sessions(database) {
    const parent = columnOf(database, "sessions", "parent_session_id");
    const [name, description] = [columnOf(database, "sessions", "name"), columnOf(database, "sessions", "description")];
    const sql = `SELECT id, working_dir, ${name}, ${description}, ${parent} FROM sessions ORDER BY id`;
    for (const row of database.iterate(sql)) yield sessionOf(database, row);
  },
};

function columnOf(database: RowQueries, table: string, name: string): string {
  return database.columns(table).has(name) ? name : `NULL AS ${name}`;
}

function sessionOf(database: RowQueries, row: DatabaseFields): DatabaseSession {
  const sessionId = asText(row["id"]);
  const { working_dir: folder, parent_session_id: parentId } = row;
  const title = [row["name"], row["description"]].find((one) => typeof one === "string" && one.trim() !== "");
  return {
    sessionId,
    entry: {
      ...(typeof title === "string" ? { title: title.trim(), titleBy: "import" } : {}),
      ...(typeof folder === "string" && folder !== "" ? { cwd: folder } : {}),
    },
    spawnedBy: typeof parentId === "string" && parentId !== "" ? parentId : null,
    lines: () => messageLines(database, sessionId),
  };
}

/** Each message is one line. The order of row numbers equals the program's order by time. */
function* messageLines(database: RowQueries, sessionId: string): Generator<string> {
  const created = columnOf(database, "messages", "created_timestamp");
  const [messageId, metadata] = [
    columnOf(database, "messages", "message_id"),
    columnOf(database, "messages", "metadata_json"),
  ];
  const sql = `SELECT id, ${messageId}, role, content_json, ${created}, ${metadata} FROM messages WHERE session_id = ? ORDER BY id`;
  for (const row of database.iterate(sql, sessionId)) {
    const facts = JSON.stringify({
      row: row["id"],
      id: row["message_id"] ?? undefined,
      role: row["role"],
      created: row["created_timestamp"],
    });
    const about = row["metadata_json"] === null ? "" : `,"metadata":${jsonLine(row["metadata_json"])}`;
    yield `${facts.slice(0, -1)}${about},"content":${jsonLine(row["content_json"])}}`;
  }
}
