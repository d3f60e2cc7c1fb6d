import { isFields, type Fields } from "@throughline/core/internal";
import { asText } from "../as-text.ts";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { DatabaseSession, FormatDatabase, RowQueries } from "../format-database.ts";

/** Reads the tables of the checkpointer. A thread is a session. */
export const langgraphDatabase: FormatDatabase = {
  tables: {
    checkpoints: ["thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint"],
    writes: ["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "value"],
  },
  *sessions(database) {
    const sql = "SELECT DISTINCT thread_id AS id FROM checkpoints ORDER BY 1";
    for (const { id } of database.iterate(sql)) yield threadOf(database, asText(id));
  },
};

function threadOf(database: RowQueries, sessionId: string): DatabaseSession {
  const unread = pendingWrites(database, sessionId);
  return { sessionId, entry: {}, spawnedBy: null, unread, lines: () => checkpointLines(database, sessionId) };
}

/**
 * Writes after the newest checkpoint, such as an interrupt, take effect only when the thread continues. They are
 * reported instead of read.
 */
function pendingWrites(database: RowQueries, threadId: string): readonly string[] {
  const newest = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''";
  const sql =
    "SELECT channel, count(*) AS number FROM writes WHERE thread_id = ? AND checkpoint_ns = '' " +
    `AND checkpoint_id = (${newest}) GROUP BY channel ORDER BY channel`;
  const rows = database.all(sql, threadId, threadId);
  const channels = rows.map(({ channel, number }) => `${asText(channel).slice(0, 100)}: ${asText(number)}`);
  return channels.length === 0
    ? []
    : [`Pending writes of the newest checkpoint are not read (${channels.join(", ")}).`];
}

/**
 * A checkpoint holds the whole state of a thread. Its line holds only the difference to its parent: new messages and
 * changed channel values. A line holds all messages when they do not begin with the parent's messages.
 */
function* checkpointLines(database: RowQueries, threadId: string): Generator<string> {
  const sql =
    "SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent, type, checkpoint, metadata " +
    "FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns";
  // Any earlier checkpoint may be the parent of a fork, so all are remembered.
  const known = new Map<string, KnownCheckpoint>();
  for (const { ns, id, parent, type, checkpoint: column, metadata } of database.iterate(sql, threadId)) {
    const place = { ns, id, parent };
    const checkpoint = type === "json" ? objectIn(column) : null;
    if (checkpoint === null) {
      yield JSON.stringify({ ...place, type, unread: true });
      continue;
    }
    const { channel_values: values, ...facts } = checkpoint;
    const { messages, ...channels } = isFields(values) ? values : {};
    const list = Array.isArray(messages) ? (messages as readonly unknown[]) : [];
    const before = known.get(`${asText(ns)} ${asText(parent)}`);
    const count = before?.messageCount ?? 0;
    const isContinued = before === undefined || hashOf(list.slice(0, count)) === before.messageHash;
    const hashes = new Map(Object.entries(channels).map(([name, value]) => [name, hashOf(value)]));
    known.set(`${asText(ns)} ${asText(id)}`, {
      messageCount: list.length,
      messageHash: hashOf(list),
      channels: hashes,
    });
    const changed = Object.entries(channels).filter(([name]) => hashes.get(name) !== before?.channels.get(name));
    yield JSON.stringify({
      ...place,
      ...facts,
      ...(isContinued ? {} : { replaces: true }),
      messages: isContinued ? list.slice(count) : list,
      channels: Object.fromEntries(changed),
      metadata: objectIn(metadata) ?? {},
    });
  }
}

interface KnownCheckpoint {
  readonly messageCount: number;
  readonly messageHash: string;
  readonly channels: ReadonlyMap<string, string>;
}

function hashOf(value: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(value) ?? "")
    .digest("base64url");
}

function objectIn(column: unknown): Fields | null {
  const value = jsonIn(column);
  return isFields(value) ? value : null;
}

function jsonIn(column: unknown): unknown {
  const text = typeof column === "string" ? column : column instanceof Uint8Array ? Buffer.from(column).toString() : "";
  try {
    return JSON.parse(text);
  } catch {
    // The row uses another serializer or is incomplete. The caller reports its checkpoint as unreadable.
    return null;
  }
}
