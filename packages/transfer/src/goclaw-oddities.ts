import { createFinding, quote } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { isBrokenList, knownRoles, listColumns, timeMs } from "./goclaw-rows.ts";
import type { DatabaseRow, ForeignDatabase } from "./node/foreign-database.ts";

/**
 * Collects, by session key, the row data that a record cannot hold; rows without a key are under "". Each table is
 * scanned once and not once per session, because a database may hold many sessions.
 */
export function findOddities(database: ForeignDatabase): ReadonlyMap<string, readonly Finding[]> {
  const { path } = database;
  const found = new Map<string, Finding[]>();
  const tell = (key: unknown, message: string, remedy: string): void => {
    const named = typeof key === "string" ? key : "";
    const where = named === "" ? { path } : { path, key: named };
    const finding = { ...createFinding("RECORD_INVALID", message, where), remedy };
    found.set(named, [...(found.get(named) ?? []), finding]);
  };
  for (const { session_key: key, role, count } of unknownRoles(database)) {
    const message = `${String(count)} rows have the role ${quote(role)}, which GoClaw is not known to write.`;
    tell(key, message, "Nothing to do: they are read as a user's messages, and their role is kept in `goclaw.role`.");
  }
  for (const [key, count] of untimedRows(database))
    tell(key, `${count} rows state no time.`, "Nothing to do: each is taken for as old as the row before it.");
  for (const row of checkpoints(database)) {
    const broken = Object.keys(listColumns).filter((column) => isBrokenList(row[column]));
    if (broken.length === 0) continue;
    const message = `The checkpoint ${quote(row["id"])} has no list in ${broken.join(", ")}.`;
    tell(row["session_key"], message, "Nothing to do: the text is kept in `goclaw` of the record.");
  }
  return found;
}

function unknownRoles(database: ForeignDatabase): Iterable<DatabaseRow> {
  if (!database.columns("messages").has("role")) return [];
  const known = knownRoles.map((role) => `'${role}'`).join(", ");
  return database.iterate(`
    SELECT session_key, role, count(*) AS count FROM messages WHERE role IS NULL OR role NOT IN (${known})
    GROUP BY session_key, role ORDER BY session_key, role`);
}

function untimedRows(database: ForeignDatabase): ReadonlyMap<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const table of ["messages", "checkpoints", "compactions"]) {
    const columns = database.columns(table);
    // Records stored as JSON state their own time.
    if (!columns.has("session_key") || !columns.has("timestamp") || columns.has("data")) continue;
    const sql = `SELECT session_key, timestamp FROM ${table} WHERE typeof(timestamp) NOT IN ('integer', 'real')`;
    for (const row of database.iterate(sql)) {
      if (timeMs(row["timestamp"]) !== null) continue;
      const key = typeof row["session_key"] === "string" ? row["session_key"] : "";
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
}

function checkpoints(database: ForeignDatabase): Iterable<DatabaseRow> {
  const columns = database.columns("checkpoints");
  if (!columns.has("session_key")) return [];
  const lists = Object.keys(listColumns).filter((column) => columns.has(column));
  return database.iterate(`SELECT ${["session_key", "id", ...lists].join(", ")} FROM checkpoints ORDER BY rowid`);
}
