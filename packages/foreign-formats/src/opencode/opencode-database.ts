import { isFields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import {
  jsonLine,
  type DatabaseFields,
  type DatabaseSession,
  type FormatDatabase,
  type SessionVersion,
  type RowQueries,
} from "../format-database.ts";
import { heldBack, SettledMessages } from "./settled-messages.ts";

/** opencode has this database since version 1.2, with a row for each session, message and part. */
export const opencodeDatabase: FormatDatabase = {
  tables: {
    session: ["id", "parent_id", "directory", "title"],
    message: ["id", "session_id", "time_created", "data"],
    part: ["id", "message_id", "data"],
  },
  *sessions(database, isKnown) {
    const columns = database.columns("session");
    const optional = ["revert", "time_updated"].map((name) => (columns.has(name) ? name : `NULL AS ${name}`));
    const sql = `SELECT id, parent_id, directory, title, ${optional.join(", ")} FROM session ORDER BY id`;
    const versionOf = isKnown === undefined ? null : sessionVersions(database);
    for (const row of database.iterate(sql)) {
      const version = versionOf?.(row) ?? null;
      if (version === null || isKnown?.(asText(row["id"]), version) !== true) yield sessionOf(database, row);
    }
  },
};

/** opencode sets this column of each row that it adds or changes. */
const changed = "time_updated";

/**
 * Returns a function that describes a session by its rows, whose content is not read; null for a database that does not
 * state times.
 */
function sessionVersions(database: RowQueries): ((row: DatabaseFields) => SessionVersion | null) | null {
  const tables = ["message", "part"];
  const isStated = (table: string): boolean =>
    [changed, "session_id"].every((name) => database.columns(table).has(name));
  if (!tables.every(isStated)) return null;
  const sums = tables.map(
    (table) => `SELECT count(*) AS rows, max(${changed}) AS latest FROM ${table} WHERE session_id = ?`,
  );
  return (row) => {
    const counts = sums.flatMap((sql) => database.all(sql, asText(row["id"])));
    const times = [row[changed], ...counts.map(({ latest }) => latest ?? 0)];
    if (!times.every((time) => typeof time === "number")) return null;
    return { text: JSON.stringify([row, counts]), changedMs: Math.max(...times) };
  };
}

function sessionOf(
  database: RowQueries,
  { id, parent_id: parentId, directory, title, revert }: DatabaseFields,
): DatabaseSession {
  const sessionId = asText(id);
  return {
    sessionId,
    ...sessionFacts({ parentId, directory, title }),
    unread: [heldBack(newestReply(database, sessionId))].filter((message) => message !== null),
    lines: () => messageLines(database, sessionId, revertedFrom(revert)),
  };
}

function newestReply(
  database: RowQueries,
  sessionId: string,
): { readonly id: string; readonly info: DatabaseFields } | null {
  const messages = database.iterate(
    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC",
    sessionId,
  );
  for (const { id, data } of messages) {
    const info = objectOf(data);
    if (info["role"] === "assistant") return { id: asText(id), info };
  }
  return null;
}

/** The fields have the same names in a row and in a file, so both use this function. */
export function sessionFacts({ parentId, directory, title }: DatabaseFields): {
  readonly entry: DatabaseFields;
  readonly spawnedBy: string | null;
} {
  const named = typeof title === "string" && title.trim() !== "" ? { title: title.trim(), titleBy: "import" } : {};
  const placed = typeof directory === "string" && directory !== "" ? { cwd: directory } : {};
  const spawnedBy = typeof parentId === "string" && parentId !== "" ? parentId : null;
  return { entry: { ...named, ...placed }, spawnedBy };
}

/** A message with its parts is one line, because a line is an item. */
function* messageLines(database: RowQueries, sessionId: string, revertedId: string | null): Generator<string> {
  const messages = database.iterate(
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id",
    sessionId,
  );
  const settled = new SettledMessages();
  let isReverted = false;
  for (const { id, time_created: created, data } of messages) {
    const info = objectOf(data);
    isReverted ||= id === revertedId;
    const head = jsonLine(JSON.stringify({ id, sessionID: sessionId, time: { created }, ...info }));
    const whole = Object.keys(info).length === 0 ? `"data":${jsonLine(data)},` : "";
    const parts = database.all("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", asText(id));
    const texts = parts.map((part) => partLine(part));
    const line = `{"info":${head},${whole}"parts":[${texts.join(",")}]${isReverted ? ',"reverted":true' : ""}}`;
    yield* settled.after(info, line);
  }
}

function partLine({ id, data }: DatabaseFields): string {
  const text = jsonLine(data);
  // The id is in a column of its own, so it is added to the part.
  return text.startsWith("{") && text !== "{}"
    ? `{"id":${JSON.stringify(id)},${text.slice(1)}`
    : `{"id":${JSON.stringify(id)},"data":${text}}`;
}

function revertedFrom(revert: unknown): string | null {
  const { messageID: messageId } = objectOf(revert);
  return typeof messageId === "string" ? messageId : null;
}

function objectOf(text: unknown): DatabaseFields {
  const value: unknown = typeof text === "string" ? JSON.parse(jsonLine(text)) : null;
  return isFields(value) ? value : {};
}
