import { asText } from "../as-text.ts";
import { isJsonFields } from "@throughline/openclaw-format/internal";
import {
  jsonLine,
  type DatabaseFields,
  type DatabaseSession,
  type FormatDatabase,
  type RowQueries,
} from "../format-database.ts";

/** The database of opencode since 1.2: a row for each session, message and part. */
export const opencodeDatabase: FormatDatabase = {
  tables: {
    session: ["id", "parent_id", "directory", "title"],
    message: ["id", "session_id", "time_created", "data"],
    part: ["id", "message_id", "data"],
  },
  *sessions(database) {
    const revert = database.columns("session").has("revert") ? "revert" : "NULL AS revert";
    const sql = `SELECT id, parent_id, directory, title, ${revert} FROM session ORDER BY id`;
    for (const row of database.iterate(sql)) yield sessionOf(database, row);
  },
};

function sessionOf(
  database: RowQueries,
  { id, parent_id: parentId, directory, title, revert }: DatabaseFields,
): DatabaseSession {
  const sessionId = asText(id);
  const named = typeof title === "string" && title.trim() !== "" ? { title: title.trim(), titleBy: "import" } : {};
  const placed = typeof directory === "string" && directory !== "" ? { cwd: directory } : {};
  return {
    sessionId,
    entry: { ...named, ...placed },
    spawnedBy: typeof parentId === "string" && parentId !== "" ? parentId : null,
    lines: () => messageLines(database, sessionId, revertedFrom(revert)),
  };
}

/** A message with its parts on a line. One that is still being written ends the session for now: its row will change. */
function* messageLines(database: RowQueries, sessionId: string, revertedId: string | null): Generator<string> {
  const messages = database.iterate(
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id",
    sessionId,
  );
  let isReverted = false;
  for (const { id, time_created: created, data } of messages) {
    const info = objectOf(data);
    if (isOpen(info)) return;
    isReverted ||= id === revertedId;
    const head = jsonLine(JSON.stringify({ id, sessionID: sessionId, time: { created }, ...info }));
    const whole = Object.keys(info).length === 0 ? `"data":${jsonLine(data)},` : "";
    const parts = database.all("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", asText(id));
    const texts = parts.map((part) => partLine(part));
    yield `{"info":${head},${whole}"parts":[${texts.join(",")}]${isReverted ? ',"reverted":true' : ""}}`;
  }
}

function partLine({ id, data }: DatabaseFields): string {
  const text = jsonLine(data);
  // The id is a column of its own.
  return text.startsWith("{") && text !== "{}"
    ? `{"id":${JSON.stringify(id)},${text.slice(1)}`
    : `{"id":${JSON.stringify(id)},"data":${text}}`;
}

function isOpen({ role, time, error }: DatabaseFields): boolean {
  return role === "assistant" && error === undefined && isJsonFields(time) && time["completed"] === undefined;
}

function revertedFrom(revert: unknown): string | null {
  const { messageID: messageId } = objectOf(revert);
  return typeof messageId === "string" ? messageId : null;
}

function objectOf(text: unknown): DatabaseFields {
  const value: unknown = typeof text === "string" ? JSON.parse(jsonLine(text)) : null;
  return isJsonFields(value) ? value : {};
}
