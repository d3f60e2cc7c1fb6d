import { isFields, parsedFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { Buffer } from "node:buffer";
import type { DatabaseSession, FormatDatabase, RowQueries } from "../format-database.ts";

/**
 * Cursor's global store keeps conversations in this table. `composerData:<id>` holds a conversation, and
 * `bubbleId:<id>:<bubble>` holds a message. The other tables hold tokens and are never read.
 */
export const cursorDatabase: FormatDatabase = {
  tables: { cursorDiskKV: ["key", "value"] },
  *sessions(database) {
    for (const { key, value } of database.iterate(rowsUnder, "composerData:", "composerData;")) {
      const id = asText(key).slice("composerData:".length);
      yield sessionOf(database, id, objectIn(value) ?? {});
    }
  },
};

/** The query compares a range of names, so that the table's index serves it. */
const rowsUnder = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key";

function sessionOf(database: RowQueries, sessionId: string, data: Fields): DatabaseSession {
  const { name } = data;
  const title = typeof name === "string" ? name.trim() : "";
  return {
    sessionId,
    entry: title === "" ? {} : { title, titleBy: "import" },
    spawnedBy: null,
    lines: () => bubbleLines(database, sessionId, data),
  };
}

/** Messages come in the order of the conversation's list. Messages that the list lacks come last. */
function* bubbleLines(database: RowQueries, sessionId: string, data: Fields): Generator<string> {
  const headers = data["fullConversationHeadersOnly"];
  const listed = Array.isArray(headers) ? (headers as readonly unknown[]).filter(isFields) : [];
  const ids = new Set(listed.flatMap(({ bubbleId }) => (typeof bubbleId === "string" ? [bubbleId] : [])));
  for (const id of ids) {
    const [row] = database.all("SELECT value FROM cursorDiskKV WHERE key = ?", `bubbleId:${sessionId}:${id}`);
    if (row !== undefined) yield bubbleLine(id, row["value"], false);
  }
  const prefix = `bubbleId:${sessionId}`;
  for (const { key, value } of database.iterate(rowsUnder, `${prefix}:`, `${prefix};`)) {
    const id = asText(key).slice(prefix.length + 1);
    if (!ids.has(id)) yield bubbleLine(id, value, true);
  }
}

function bubbleLine(id: string, value: unknown, isUnlisted: boolean): string {
  const bubble = objectIn(value);
  const facts = { bubbleId: id, ...(isUnlisted ? { unlisted: true } : {}) };
  if (bubble === null) return JSON.stringify({ ...facts, unread: true });
  return JSON.stringify({ ...facts, bubble: withoutKeys(bubble, mostLevels) });
}

/** No message has data at a deeper level, so deeper values become null. */
const mostLevels = 100;

/** Fields with these names hold keys or tokens of the user, which must not reach a log. */
const secretName = /(?:encryptionkey|accesstoken|refreshtoken|apikey|authtoken|password|secret)$/i;

function withoutKeys(value: unknown, levels: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return null;
  if (Array.isArray(value)) return (value as readonly unknown[]).map((one) => withoutKeys(one, levels - 1));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) =>
      secretName.test(name.slice(-40)) ? [] : [[name, withoutKeys(one, levels - 1)] as const],
    ),
  );
}

function objectIn(column: unknown): Fields | null {
  const text = typeof column === "string" ? column : column instanceof Uint8Array ? Buffer.from(column).toString() : "";
  // Null means that the text is cut off, or that another version encodes it. The caller reports it as unread.
  return parsedFields(text);
}
