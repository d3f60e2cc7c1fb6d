import { asText } from "../as-text.ts";
import type { DatabaseSession, FormatDatabase, RowQueries } from "../format-database.ts";

/**
 * The database has the default table names of `SQLiteSession` in the Python SDK. A database with other names is not
 * found.
 */
export const agentDatabase: FormatDatabase = {
  tables: { agent_sessions: ["session_id"], agent_messages: ["id", "session_id", "message_data"] },
  *sessions(database) {
    const sql = "SELECT session_id AS id FROM agent_sessions UNION SELECT session_id FROM agent_messages ORDER BY 1";
    for (const { id } of database.iterate(sql)) yield sessionOf(database, asText(id));
  },
};

function sessionOf(database: RowQueries, sessionId: string): DatabaseSession {
  const created = database.columns("agent_messages").has("created_at") ? "created_at" : "NULL AS created_at";
  const sql = `SELECT id, message_data, ${created} FROM agent_messages WHERE session_id = ? ORDER BY id`;
  return {
    sessionId,
    entry: {},
    spawnedBy: null,
    unread: unreadOf(database, sessionId),
    *lines() {
      for (const { id, message_data: data, created_at: at } of database.iterate(sql, sessionId)) {
        // SQLite's times are in UTC without a zone, so the zone is added.
        const time = typeof at === "string" ? `${at.replace(" ", "T")}Z` : at;
        yield JSON.stringify({ row: id, created_at: time, message_data: asText(data) });
      }
    },
  };
}

/**
 * `AdvancedSQLiteSession` adds these tables. It stores the rows of all branches in one table of messages, so they
 * cannot be distinguished here.
 */
function unreadOf(database: RowQueries, sessionId: string): readonly string[] {
  const count = (table: string, what: string): number => {
    if (!database.columns(table).has("session_id") || (what !== "*" && !database.columns(table).has(what))) return 0;
    const counted = what === "*" ? "*" : `DISTINCT ${what}`;
    const [row] = database.all(`SELECT count(${counted}) AS number FROM ${table} WHERE session_id = ?`, sessionId);
    return Number(row?.["number"] ?? 0);
  };
  const [branches, usages] = [count("message_structure", "branch_id"), count("turn_usage", "*")];
  return [
    ...(branches > 1 ? [`${branches} branches of the session are read as one, in the order of their rows.`] : []),
    ...(usages > 0 ? [`Rows of usage are not read: ${usages} (table turn_usage).`] : []),
  ];
}
